/**
 * A backend whose name leads elsewhere after a while: group 9 of the cases (cases.test.ts). Two servers on two loopback
 * addresses, and a resolver that says where the name leads now.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, test } from 'node:test';
import { openBackend, type Answer, type Backend } from '../../src/upload/client.ts';
import { SHIP_DEFAULTS } from '../../src/upload/settings.ts';
import { makeBatch, makeTenant } from '../unit/upload/fakes.ts';

const BATCH = makeBatch(makeTenant(1), ['a']);
const NEVER = new AbortController().signal;
const OLD = '127.0.0.1';
const NEW = '127.0.0.2';
const OUTLIVES_THE_TEST_MS = 3_600_000;

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Place {
  readonly server: Server;
  uploadCount: number;
  /** Answers wait for it. */
  gate: Promise<void>;
}

async function listenOn(address: string, port: number): Promise<Place> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      place.uploadCount++;
      void place.gate.then(() => response.writeHead(202).end('{}'));
    });
  });
  const place: Place = { server, uploadCount: 0, gate: Promise.resolve() };
  server.listen(port, address);
  await once(server, 'listening');
  cleanups.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return place;
}

interface Resolver {
  address: string;
  readonly lookup: LookupFunction;
}

function resolver(): Resolver {
  const found: Resolver = {
    address: OLD,
    lookup: (_name, { all }, callback) =>
      all === true ? callback(null, [{ address: found.address, family: 4 }]) : callback(null, found.address, 4),
  };
  return found;
}

async function open(connectionLifeMs: number): Promise<{ old: Place; next: Place; names: Resolver; backend: Backend }> {
  const old = await listenOn(OLD, 0);
  const { port } = old.server.address() as AddressInfo;
  const next = await listenOn(NEW, port);
  const names = resolver();
  const settings = { ...SHIP_DEFAULTS, endpoint: `http://backend.example:${port}`, connectionLifeMs };
  const backend = openBackend(settings, names.lookup);
  cleanups.push(() => backend.close());
  return { old, next, names, backend };
}

async function deliver(backend: Backend): Promise<void> {
  const answer = await backend.upload(BATCH, NEVER);
  assert.ok(answer.kind === 'answered' && answer.status === 202, JSON.stringify(answer));
}

test('is followed within the life of a connection, although the old address goes on answering', async () => {
  const LIFE_MS = 100;
  const { old, next, names, backend } = await open(LIFE_MS);
  await deliver(backend);
  assert.equal(old.uploadCount, 1);
  names.address = NEW;
  // None of them fails on the way.
  while (next.uploadCount === 0) await deliver(backend);
  // Until the old connections' life is over they may be used beside new ones.
  await new Promise((resolve) => setTimeout(resolve, LIFE_MS + 50));
  const { uploadCount } = old;
  for (let n = 0; n < 5; n++) await deliver(backend);
  assert.equal(old.uploadCount, uploadCount, 'nothing goes back');
});

test('an upload under way when its connection grows old ends where it began', async () => {
  const { old, next, names, backend } = await open(0);
  let answerOld = (): void => undefined;
  old.gate = new Promise((resolve) => (answerOld = resolve));
  const underWay = deliver(backend);
  while (old.uploadCount === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  names.address = NEW;
  while (next.uploadCount === 0) await deliver(backend);
  answerOld();
  await underWay;
  assert.equal(old.uploadCount, 1);
});

test('is followed at once when the old address is gone', async () => {
  const { old, next, names, backend } = await open(OUTLIVES_THE_TEST_MS);
  await deliver(backend);
  old.server.closeAllConnections();
  old.server.close();
  names.address = NEW;
  const answers: Answer[] = [];
  while (next.uploadCount === 0) answers.push(await backend.upload(BATCH, NEVER));
  // One may notice the broken connection.
  assert.ok(answers.length <= 2, JSON.stringify(answers));
});

test('a resolver that never answers costs an attempt its time limit, and nothing was sent', async () => {
  const settings = { ...SHIP_DEFAULTS, endpoint: 'http://backend.example', connectTimeoutMs: 100 };
  const backend = openBackend(settings, () => undefined);
  cleanups.push(() => backend.close());
  assert.deepEqual(await backend.upload(BATCH, NEVER), {
    kind: 'failed',
    sent: false,
    reason: 'UND_ERR_CONNECT_TIMEOUT',
  });
});

test('the connections of a service live a minute', () => {
  assert.equal(SHIP_DEFAULTS.connectionLifeMs, 60_000);
});
