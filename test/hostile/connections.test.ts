/**
 * Many connections, slow ones, and none left: parts of groups 3 and 12 of the cases (cases.test.ts). The program goes on
 * serving who behaves.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, test } from 'node:test';
import { MiB } from '../../src/core/units.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { openRaw } from '../flow/rawhttp.ts';
import { startProgram, type Program, type ProgramOptions } from './program.ts';

const IDLE_COUNT = 10_000;
/** Of this process and of the program, each; beyond the connections themselves. */
const OTHER_DESCRIPTORS = 1000;
/** The server closes connections that are silent for 8 s. */
const SIGN_OF_LIFE_MS = 3000;
const WAVE_COUNT = 250;
/** One address has some 28 000 ports for outgoing connections, and those of earlier tests stay taken for a minute. */
const CLIENT_ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'];
const SLOW_COUNT = 300;
const DESCRIPTOR_LIMIT = 256;

let backend: CountingBackend;
let program: Program;
const sockets: Socket[] = [];

async function start(options: ProgramOptions = {}, environment: Record<string, string> = {}): Promise<void> {
  backend = await startCountingBackend();
  program = await startProgram({ SERVICE_ENDPOINT: backend.url, DEPLOYMENT_API: 'off', ...environment }, options);
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  const exitCode = await program.stop();
  await backend.close();
  assert.equal(exitCode, 0, program.output().slice(-2000));
});

/** Connected, or refused. */
async function open(from = '127.0.0.1'): Promise<Socket | null> {
  const socket = connect({ port: program.port, host: '127.0.0.1', localAddress: from });
  sockets.push(socket);
  const connected = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    once(socket, 'close').then(() => false),
  ]);
  socket.on('error', () => undefined);
  return connected ? socket : null;
}

async function openMany(count: number): Promise<Socket[]> {
  const opened: Socket[] = [];
  while (opened.length < count) {
    const some = await Promise.all(Array.from({ length: Math.min(200, count - opened.length) }, () => open()));
    for (const socket of some) {
      assert.ok(socket !== null, `connection ${opened.length} was refused`);
      opened.push(socket);
    }
  }
  return opened;
}

/** What the system allows; Node raises its own limit to it. */
function descriptorLimit(): number {
  const [, hard = ''] = /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return hard === 'unlimited' ? Infinity : Number(hard);
}

function openSockets(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/**
 * Opens so many, and keeps those that are open alive meanwhile with a request now and then: however long opening takes, at
 * the end all are open at the same time, also as the program sees it.
 */
async function holdOpen(count: number): Promise<void> {
  const held = new Map<Socket, number>();
  while (held.size < count || openSockets(program.pid) < count) {
    const wave = Array.from({ length: Math.min(WAVE_COUNT, count - held.size) }, (_, i) =>
      open(CLIENT_ADDRESSES[i % CLIENT_ADDRESSES.length]),
    );
    for (const socket of await Promise.all(wave)) {
      assert.ok(socket !== null, `connection ${held.size} was refused`);
      socket.resume();
      held.set(socket, performance.now());
    }
    // Those that the server has closed say so.
    await new Promise((resolve) => setImmediate(resolve));
    const nowMs = performance.now();
    for (const [socket, livedMs] of held) {
      if (socket.destroyed) held.delete(socket);
      else if (nowMs - livedMs > SIGN_OF_LIFE_MS) {
        socket.write('GET /live HTTP/1.1\r\nHost: x\r\n\r\n');
        held.set(socket, nowMs);
      }
    }
  }
}

/** A trace goes in and arrives. */
async function assertServes(): Promise<void> {
  const { spans } = makeTrace(3, 3);
  const before = backend.runs.length;
  assert.equal((await postJson(program.url, jsonRequest(spans))).status, 200);
  await backend.until(() => backend.runs.length >= before + spans.length);
}

describe('3 and 12: connections', () => {
  test(`${IDLE_COUNT} idle connections cost little, and hold up nobody`, async (context) => {
    const limit = descriptorLimit();
    const count = Math.min(IDLE_COUNT, limit - OTHER_DESCRIPTORS);
    if (count < IDLE_COUNT) context.diagnostic(`only ${count} connections: ${limit} descriptors are allowed here`);
    await start();
    await assertServes();
    program.forgetPeak();
    const before = program.peakBytes();
    await holdOpen(count);
    await assertServes();
    assert.equal((await fetch(`http://127.0.0.1:${program.port}/ready`)).status, 200);
    const perConnection = (program.peakBytes() - before) / count;
    assert.ok(perConnection < 16 * 1024, `${Math.round(perConnection)} bytes each`);
  });

  test('hundreds of heads and bodies that trickle in hold no more than what came, and hold up nobody', async () => {
    await start();
    const body = jsonRequest(makeTrace(1, 1).spans).padEnd(MiB);
    const request = `POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    await assertServes();
    program.forgetPeak();
    const before = program.peakBytes();
    const slow = await openMany(SLOW_COUNT);
    for (const [i, socket] of slow.entries()) socket.write(request.slice(0, 40 + (i % 2) * 600));
    await assertServes();
    for (let round = 0; round < 10; round++) {
      for (const [i, socket] of slow.entries()) {
        if (!socket.destroyed) socket.write(request.slice(40 + (i % 2) * 600 + round, 41 + (i % 2) * 600 + round));
      }
      await assertServes();
    }
    // Declared bytes are not touched before they come.
    assert.ok(program.peakBytes() - before < 128 * MiB, `${(program.peakBytes() - before) / MiB} MiB`);
    for (const socket of slow) socket.destroy();
    await program.idle();
  });

  test('a head that never ends is cut by the server, without help of the client', async () => {
    await start();
    const connection = await openRaw(program.port);
    connection.write('POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-');
    // The server library's own limit, ten seconds.
    await connection.closed;
    await assertServes();
  });

  test('clients that ask and never read their answers are no trouble to the others', async () => {
    await start();
    const deaf = await openMany(50);
    for (const socket of deaf) {
      socket.pause();
      socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200));
    }
    await assertServes();
    for (const socket of deaf) socket.destroy();
    await program.idle();
  });

  test('with no descriptor left the program stays, and serves again once there are some', async () => {
    await start({ descriptorLimit: DESCRIPTOR_LIMIT });
    await assertServes();
    const attempts: Promise<Socket | null>[] = [];
    for (let i = 0; i < 600; i++) attempts.push(open());
    await Promise.all(attempts);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(program.exitCode, null, program.output().slice(-2000));
    for (const socket of sockets.splice(0)) socket.destroy();
    // Until it has seen that they are gone it closes what comes.
    while (openSockets(program.pid) > DESCRIPTOR_LIMIT / 2) await new Promise((resolve) => setTimeout(resolve, 10));
    // Its uploads need sockets of their own; both come back.
    await assertServes();
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${program.port}/ready`)).ok;
    while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  test('stopped for a while (SIGSTOP) and woken again, it answers what came meanwhile', async () => {
    await start();
    await assertServes();
    process.kill(program.pid, 'SIGSTOP');
    const { spans } = makeTrace(3, 3);
    const before = backend.runs.length;
    const answers = Array.from({ length: 20 }, () => postJson(program.url, jsonRequest(spans)));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    process.kill(program.pid, 'SIGCONT');
    assert.ok((await Promise.all(answers)).every(({ status }) => status === 200));
    await backend.until(() => backend.runs.length >= before + spans.length);
    await assertServes();
  });
});
