/**
 * The embedded backend alone: how fast uploads become rows (one thread, no sockets), and how long the queries of a live
 * list take over what was written. `npx node bench/backend.ts [traces=20000] [runsPerTrace=5] [file]`; prints JSON.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { zstdCompressSync } from 'node:zlib';
import { partsOf } from '../src/backend/client.ts';
import { readFilter } from '../src/backend/filter.ts';
import { writeMultipart } from '../src/backend/form.ts';
import { inflate } from '../src/backend/inflate.ts';
import { readUpload } from '../src/backend/intake.ts';
import { writeRfc3339, writeSegmentTime } from '../src/backend/moment.ts';
import { readMultipart } from '../src/backend/multipart.ts';
import { listProjects, listRuns, listTraces, readTrace } from '../src/backend/query.ts';
import { backendSettings } from '../src/backend/settings.ts';
import { readStats } from '../src/backend/stats.ts';
import { openStore } from '../src/backend/store.ts';

const traceCount = Number(process.argv[2] ?? 20_000);
const runsPerTrace = Number(process.argv[3] ?? 5);
const file = process.argv[4] ?? ':memory:';
const RUNS_PER_UPLOAD = 100;

const WORDS =
  'the agent plans a trip to paris and looks up weather trains hotels prices while the user asks about visa rules';
const vocabulary = WORDS.split(' ');
let seed = 42;
const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
const prose = (length: number): string => {
  let text = '';
  while (text.length < length) {
    text += `${vocabulary[Math.floor(random() * vocabulary.length)] ?? ''} `;
    if (random() < 0.05) text += `${Math.floor(random() * 1e6).toString(36)} `;
  }
  return text;
};
const texts = Array.from({ length: 1000 }, () => prose(450));
const text = (): string => texts[Math.floor(random() * texts.length)] ?? '';

let nowUs = Date.UTC(2026, 0, 1) * 1000;
function trace(): Record<string, unknown>[] {
  const traceId = randomUUID();
  const rootUs = (nowUs += Math.floor(random() * 2e6));
  const rootOrder = `${writeSegmentTime(rootUs)}${traceId}`;
  const project = `project-${Math.floor(random() * 5)}`;
  return Array.from({ length: runsPerTrace }, (_, index) => {
    const id =
      index === 0 ? traceId : `00000000-0000-0000-${randomBytes(2).toString('hex')}-${randomBytes(6).toString('hex')}`;
    const startUs = rootUs + index * 1000;
    const usage = { input_tokens: 120, output_tokens: 30, total_tokens: 150, total_cost: 0.0004 };
    return {
      id,
      trace_id: traceId,
      ...(index === 0 ? {} : { parent_run_id: traceId }),
      name: index === 0 ? `agent ${Math.floor(random() * 20)}` : 'chat gpt-4o',
      run_type: index === 0 ? 'chain' : 'llm',
      start_time: writeRfc3339(startUs),
      end_time: writeRfc3339(startUs + Math.floor(random() ** 4 * 2e7)),
      session_name: project,
      dotted_order: index === 0 ? rootOrder : `${rootOrder}.${writeSegmentTime(startUs)}${id}`,
      ...(random() < 0.02 ? { status: 'error', error: 'RateLimitError: slow down' } : { status: 'success' }),
      inputs: {
        messages: [
          { role: 'system', content: 'You are helpful.' },
          { role: 'user', content: text() },
        ],
      },
      outputs: { messages: [{ role: 'assistant', content: text() }] },
      extra: {
        metadata: { OTEL_TRACE_ID: traceId, ls_provider: 'openai', ls_model_name: 'gpt-4o', usage_metadata: usage },
      },
    };
  });
}

const settings = backendSettings({ file, maxTraceCount: 10_000_000 });
if (file !== ':memory:') for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
const store = openStore(settings);
const spentUs = { inflate: 0, multipart: 0, check: 0, write: 0, index: 0 };
let runCount = 0;
let bodyBytes = 0;
let lastTraceId = '';
let rareWord = '';
const clock = (): number => Number(process.hrtime.bigint()) / 1000;

/** Uploads are prepared in rounds outside of the measured time. */
const TRACES_PER_ROUND = 2000;
let cpuUs = 0;
for (let made = 0; made < traceCount; made += TRACES_PER_ROUND) {
  const runs = Array.from({ length: Math.min(TRACES_PER_ROUND, traceCount - made) }, trace).flat();
  lastTraceId = String(runs.at(-1)?.['trace_id']);
  rareWord = `needle${made}`;
  (runs.at(-1)?.['inputs'] as { messages: { content: string }[] }).messages.push({ content: rareWord });
  const bodies: Uint8Array[] = [];
  for (let at = 0; at < runs.length; at += RUNS_PER_UPLOAD) {
    const parts = runs.slice(at, at + RUNS_PER_UPLOAD).flatMap((run) => partsOf('post', run));
    bodies.push(zstdCompressSync(writeMultipart(parts, 'form-boundary-0123456789')));
  }
  const before = process.cpuUsage();
  for (const body of bodies) {
    const t0 = clock();
    const plain = inflate(body, 'zstd', settings.maxBodyBytes);
    if (plain.kind !== 'bytes') throw new Error(plain.kind);
    const t1 = clock();
    const form = readMultipart(plain.bytes, 'form-boundary-0123456789', { maxPartCount: 1e6, maxHeaderBytes: 16_384 });
    if (form.kind !== 'parts') throw new Error(form.message);
    const t2 = clock();
    const upload = readUpload(form.parts, settings);
    if (upload.kind !== 'upload') throw new Error(upload.message);
    const t3 = clock();
    const outcome = store.write('tenant', upload);
    if (outcome.kind !== 'written') throw new Error(outcome.kind);
    const t4 = clock();
    // As often as the idle timer would at full speed.
    if (store.text.waitingCount >= 2000) store.text.flush(Infinity);
    const t5 = clock();
    runCount += upload.operations.length;
    bodyBytes += plain.bytes.byteLength;
    spentUs.inflate += t1 - t0;
    spentUs.multipart += t2 - t1;
    spentUs.check += t3 - t2;
    spentUs.write += t4 - t3;
    spentUs.index += t5 - t4;
  }
  const after = process.cpuUsage(before);
  cpuUs += after.user + after.system;
}
const totalUs = Object.values(spentUs).reduce((sum, each) => sum + each, 0);

const { database } = store;
const page = { limit: 50 };
const filter = (query: string): ReturnType<typeof readFilter> => readFilter(new URLSearchParams(query), []);
const queries: Record<string, () => unknown> = {
  'traces, newest': () => listTraces(database, {}, page),
  'traces of a project': () => listTraces(database, filter('project=project-1'), page),
  'traces with errors': () => listTraces(database, filter('error=true'), page),
  'traces, min duration (few)': () => listTraces(database, filter('min_duration_ms=19990'), page),
  'traces, run type': () => listTraces(database, filter('run_type=llm'), page),
  'traces, nothing matches': () => listTraces(database, filter('status=pending&min_duration_ms=1'), page),
  'traces, common word': () => listTraces(database, filter('text=weather'), page),
  'traces, rare word': () => listTraces(database, filter(`text=${rareWord}`), page),
  'traces, error text': () => listTraces(database, filter('error=ratelimit'), page),
  'runs, newest': () => listRuns(database, {}, page),
  'runs by name': () => listRuns(database, filter('name=agent+7'), page),
  'runs, llm errors': () => listRuns(database, filter('run_type=llm&status=error'), page),
  'runs, nothing matches': () => listRuns(database, filter('run_type=tool'), page),
  'runs, common word': () => listRuns(database, filter('text=weather'), page),
  'runs, rare word': () => listRuns(database, filter(`text=${rareWord}`), page),
  'one trace': () => readTrace(database, lastTraceId, undefined, 'flat'),
  projects: () => listProjects(database, undefined),
  'stats, all': () => readStats(database, {}, 60),
  'stats of a project': () => readStats(database, filter('project=project-1'), 60),
};
const ROUNDS = 7;
const queryMs: Record<string, number> = {};
for (const [name, query] of Object.entries(queries)) {
  const times = Array.from({ length: ROUNDS }, () => {
    const from = clock();
    query();
    return (clock() - from) / 1000;
  });
  queryMs[name] = Number((times.sort((a, b) => a - b)[ROUNDS >> 1] ?? 0).toFixed(2));
}
const round = (value: number): number => Number(value.toFixed(2));
console.log(
  JSON.stringify(
    {
      machine: cpus()[0]?.model,
      cores: availableParallelism(),
      node: process.version,
      file,
      traceCount,
      runCount,
      bytesPerRun: Math.round(bodyBytes / runCount),
      runsPerSec: Math.round(runCount / (totalUs / 1e6)),
      cpuUsPerRun: round(cpuUs / runCount),
      usPerRun: Object.fromEntries(Object.entries(spentUs).map(([name, us]) => [name, round(us / runCount)])),
      queryMedianMs: queryMs,
    },
    null,
    2,
  ),
);
store.close();
