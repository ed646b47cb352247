/**
 * The backend of a fault run, a process of its own that survives: takes uploads, checks every run against what was sent, and
 * misbehaves as told. What it has taken it remembers, whether or not its answer got through. Told its seed and the start of
 * its randomness; reports its port; ends with its parent.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRandom } from '../../bench/random.ts';
import { readRuns } from '../flow/countingbackend.ts';
import { checkArrival } from './check.ts';

/** How uploads are met from now on; `nice` is a backend that works. */
export const MOODS = [
  'nice',
  'slow',
  'errors',
  'resets',
  'huge-answers',
  'redirects',
  'refuses-key',
  'small-batches',
] as const;
export type Mood = (typeof MOODS)[number];

export interface BackendReport {
  readonly uploadCount: number;
  readonly takenUploadCount: number;
  /** Times that each run was taken, by trace number: one entry a span. */
  readonly arrivals: readonly (readonly [number: number, counts: readonly number[]])[];
  /** At most {@link MAX_TOLD} of each; the counts are of all. */
  readonly differences: readonly string[];
  readonly differenceCount: number;
  readonly strangers: readonly string[];
  readonly strangerCount: number;
  /** Requests that followed a redirect: they carry the key to somebody else. */
  readonly followedCount: number;
  readonly answersByStatus: Readonly<Record<string, number>>;
}

const MAX_TOLD = 20;
const HUGE_CHUNK = Buffer.alloc(1024 * 1024, 'x');
const HUGE_CHUNK_COUNT = 64;
/** Over this many runs a batch is too large, where that is the mood. */
const SMALL_BATCH_RUNS = 8;

if (process.send !== undefined) serve(Number(process.argv[2]), process.send.bind(process));

function serve(seed: number, send: (message: object) => void): void {
  const random = createRandom(seed ^ 0x5eed);
  let mood: Mood = 'nice';
  let uploadCount = 0;
  let takenUploadCount = 0;
  let differenceCount = 0;
  let strangerCount = 0;
  let followedCount = 0;
  const arrivals = new Map<number, number[]>();
  const differences: string[] = [];
  const strangers: string[] = [];
  const answersByStatus: Record<string, number> = {};

  const answer = (
    response: ServerResponse,
    status: number,
    headers: Record<string, string> = {},
    body = '{}',
  ): void => {
    answersByStatus[status] = (answersByStatus[status] ?? 0) + 1;
    response.writeHead(status, headers).end(body);
  };
  const take = (runs: ReturnType<typeof readRuns>): void => {
    takenUploadCount++;
    for (const arrived of runs) {
      const arrival = checkArrival(seed, arrived);
      if (arrival === null) {
        strangerCount++;
        if (strangers.length < MAX_TOLD) strangers.push(JSON.stringify(arrived.run).slice(0, 300));
        continue;
      }
      const counts = arrivals.get(arrival.number) ?? [];
      arrivals.set(arrival.number, counts);
      for (let index = counts.length; index <= arrival.index; index++) counts.push(0);
      counts[arrival.index] = (counts[arrival.index] ?? 0) + 1;
      if (arrival.differences.length === 0) continue;
      differenceCount++;
      if (differences.length < MAX_TOLD) {
        differences.push(`trace ${arrival.number}, span ${arrival.index}: ${arrival.differences.join('; ')}`);
      }
    }
  };
  const isKnown = (runs: ReturnType<typeof readRuns>): boolean =>
    runs.every((arrived) => {
      const arrival = checkArrival(seed, arrived);
      return arrival !== null && (arrivals.get(arrival.number)?.[arrival.index] ?? 0) > 0;
    });

  const meet = (runs: ReturnType<typeof readRuns>, request: IncomingMessage, response: ServerResponse): void => {
    switch (mood) {
      case 'nice':
        // What it has it says so, now and then: both answers mean that the runs are there.
        if (random.chance(0.5) && isKnown(runs)) return answer(response, 409);
        take(runs);
        return answer(response, 202);
      case 'slow':
        setTimeout(
          () => {
            take(runs);
            answer(response, 202);
          },
          random.between(100, 3000),
        );
        return;
      case 'errors': {
        const status = random.pick([408, 425, 429, 429, 500, 502, 503, 503, 504, 202]);
        // A backend may fail after it has taken an upload.
        if (status === 202 || (status >= 500 && random.chance(0.3))) take(runs);
        const headers = random.chance(0.5) ? { 'retry-after': String(random.between(0, 2)) } : {};
        return answer(response, status, headers, random.chance(0.2) ? '<html>\u0000 no JSON' : '{}');
      }
      case 'resets':
        if (random.chance(0.5)) take(runs);
        if (random.chance(0.5)) response.writeHead(202, { 'content-length': '100' }).write('{');
        return void request.socket.resetAndDestroy();
      case 'huge-answers': {
        take(runs);
        response.writeHead(random.pick([200, 500]));
        answersByStatus['huge'] = (answersByStatus['huge'] ?? 0) + 1;
        let left = HUGE_CHUNK_COUNT;
        const more = (): void => {
          while (left-- > 0) if (!response.write(HUGE_CHUNK)) return;
          response.end();
        };
        response.on('drain', more);
        return more();
      }
      case 'redirects':
        return answer(response, random.pick([301, 302, 307, 308]), { location: '/elsewhere' });
      case 'refuses-key':
        if (request.headers['x-api-key'] === 'chaos-key-two') return answer(response, random.pick([401, 403]));
        take(runs);
        return answer(response, 202);
      case 'small-batches':
        if (runs.length > SMALL_BATCH_RUNS) return answer(response, 413);
        take(runs);
        return answer(response, 202);
    }
  };

  const server = createServer((request, response) => {
    if (request.url === '/elsewhere') followedCount++;
    if (request.url !== '/runs/multipart') return answer(response, 404);
    // Some resets come while the body is still on its way.
    if (mood === 'resets' && random.chance(0.3)) {
      request.once('data', () => request.socket.resetAndDestroy());
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('end', () => {
      uploadCount++;
      try {
        meet(readRuns(String(request.headers['x-api-key']), Buffer.concat(chunks), request.headers), request, response);
      } catch (error) {
        differenceCount++;
        differences.push(`an upload that cannot be read: ${String(error).slice(0, 300)}`);
        answer(response, 400);
      }
    });
  });
  server.listen(0, '127.0.0.1', () => send({ port: (server.address() as AddressInfo).port }));
  process.on('message', (message: { mood: Mood } | 'report') => {
    if (message !== 'report') {
      mood = message.mood;
      return;
    }
    send({
      uploadCount,
      takenUploadCount,
      arrivals: [...arrivals],
      differences,
      differenceCount,
      strangers,
      strangerCount,
      followedCount,
      answersByStatus,
    } satisfies BackendReport);
  });
  process.once('disconnect', () => process.exit());
}
