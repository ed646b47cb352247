/**
 * What does one request cost the acceptor, decoding left out? A real acceptor in a process of its own hands bodies to an
 * intake that copies them once and accepts them in the next turn; keep-alive connections send the next request when the
 * last was answered. Beside it the floor: the same server library answering without looking at anything.
 * `npx node bench/accept.ts [--seconds N]`; warm-up: the first second of each round.
 *
 * Two cores of an EPYC, shared with much other work, Node 22.23, 16 connections: 10.7 µs of CPU (the kernel's included)
 * for a body of 200 bytes, 11.9 for 20 kB, 19.7 for 168 kB; the floor is 7.4, 8.7 and 16.7. Three microseconds are ours.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Intake, IntakeBody } from '../src/core/intake.ts';
import type { Admission } from '../src/core/outcome.ts';
import { MiB } from '../src/core/units.ts';
import { meterProcess } from './procfs.ts';
import { describeMachine, figure, renderTable } from './report.ts';

const { values } = parseArgs({ options: { serve: { type: 'string' }, seconds: { type: 'string', default: '4' } } });
const CONNECTIONS = 16;
const BODY_BYTES = [200, 20_000, 168_000];

if (values.serve === undefined) await measureAll(Number(values.seconds) * 1000);
else await serve(values.serve);

async function measureAll(roundMs: number): Promise<void> {
  const rows: string[][] = [];
  for (const kind of ['floor', 'acceptor']) {
    const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), '--serve', kind], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const meter = meterProcess(child.pid ?? 0);
    for (const bodyBytes of BODY_BYTES) {
      const load = startLoad(Number(String(line)), bodyBytes);
      await sleep(1000);
      const [fromCount, fromSec, fromMs] = [load.count, meter.cpuSec(), performance.now()];
      await sleep(roundMs);
      const count = load.count - fromCount;
      const cpuUs = ((meter.cpuSec() - fromSec) * 1e6) / count;
      rows.push([kind, figure(bodyBytes), figure((count * 1000) / (performance.now() - fromMs)), figure(cpuUs)]);
      await load.stop();
    }
    child.kill();
    await once(child, 'exit');
  }
  const { cpu, cores, node } = describeMachine();
  console.log(`${cpu}, ${cores} cores, Node ${node}\n`);
  console.log(renderTable(['server', 'body bytes', 'requests/s', 'CPU µs/request'], rows));
}

function startLoad(port: number, bodyBytes: number): { readonly count: number; stop(): Promise<void> } {
  const head = `POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:4318\r\nUser-Agent: OTel-OTLP-Exporter-JavaScript/0.220.0\r\nContent-Type: application/x-protobuf\r\nX-API-Key: lsv2_pt_0123456789abcdef0123456789abcdef_0123456789\r\nService-Project: demo\r\nConnection: keep-alive\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), Buffer.alloc(bodyBytes, 10)]);
  let count = 0;
  let stopping = false;
  const ends = Array.from({ length: CONNECTIONS }, async () => {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    // Answers are smaller than a segment: one event, one answer.
    socket.on('data', (answer: Buffer) => {
      if (!answer.toString('latin1', 9, 12).startsWith('200')) throw new Error(answer.toString());
      count++;
      if (stopping) socket.end();
      else socket.write(request);
    });
    socket.write(request);
    await once(socket, 'close');
  });
  return {
    get count() {
      return count;
    },
    stop: async () => {
      stopping = true;
      await Promise.all(ends);
    },
  };
}

async function serve(kind: string): Promise<void> {
  if (kind === 'floor') {
    const library = await import('uWebSockets.js');
    const app = library.App();
    app.post('/v1/traces', (response) => {
      response.onAborted(() => undefined);
      response.onData((_chunk, isLast) => {
        if (isLast) setImmediate(() => response.cork(() => void response.end('')));
      });
    });
    app.listen(0, (socket) => console.log(library.us_socket_local_port(socket)));
    return;
  }
  const { createAcceptor } = await import('../src/accept/acceptor.ts');
  const { createCounterTable } = await import('../src/core/counters.ts');
  const { silentLog } = await import('../src/core/log.ts');
  const acceptor = createAcceptor(
    {
      host: '127.0.0.1',
      port: 0,
      tlsCertFile: null,
      tlsKeyFile: null,
      maxBodyBytes: 200 * MiB,
      maxInflightBytes: 64 * MiB,
      apiKey: null,
      project: null,
      corsAllowOrigins: [],
    },
    {
      intake: copyingIntake(),
      counters: createCounterTable(1).row(0),
      log: silentLog,
      stageReasons: () => [],
      apps: [],
    },
  );
  await acceptor.start();
  acceptor.ready();
  console.log(acceptor.port);
}

function copyingIntake(): Intake {
  const slab = new Uint8Array(MiB);
  const accepted: Admission = { kind: 'accepted', acceptedCount: 1, rejectedCount: 0, message: '' };
  let waiting: IntakeBody[] = [];
  const take = (body: IntakeBody): void => {
    if (waiting.push(body) > 1) return;
    setImmediate(() => {
      const settled = waiting;
      waiting = [];
      for (const each of settled) each.settle(accepted);
    });
  };
  return {
    submit: (body, bytes) => {
      slab.set(bytes);
      take(body);
    },
    submitOwned: take,
  };
}
