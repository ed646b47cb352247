/**
 * The fault run: official exporters send spans with known ids through a proxy that is killed, frozen, restarted, starved of
 * disk and cut from its backend, while the backend misbehaves. At the end: what was acknowledged has arrived at least once,
 * what arrived was sent, and its content is what was sent. Exit code 1 where that does not hold.
 *
 *     npm run chaos -- --minutes 20 --seed 7
 *
 * A seed fixes the plan and what is sent; when exactly a signal strikes is the machine's. `--without kill,disk` leaves deeds
 * out, `--volatile` runs without DURABLE_ACK (then spans are lost, and the run says so), `--keep` keeps folder and log.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MINUTE_MS, SECOND_MS } from '../../src/core/units.ts';
import type { BackendReport, Mood } from './backend.ts';
import { mountSmallDisk, type SmallDisk } from './disk.ts';
import { describe, drawPlan, type Deed, type PlannedDeed } from './plan.ts';
import { createProxy, type ProxyProcess } from './proxy.ts';
import { startRelay } from './relay.ts';
import { startSender, type Sender } from './sender.ts';
import { tally } from './verdict.ts';

const SENDERS = [
  { encoding: 'protobuf', gzip: false },
  { encoding: 'json', gzip: false },
  { encoding: 'protobuf', gzip: true },
  { encoding: 'json', gzip: true },
] as const;
const SEND_PAUSE_MS = 30;
const DISK_MIB = 192;
const EXCUSED_MS = 10 * SECOND_MS;
const READY_MS = 60 * SECOND_MS;
/** After the last fault everything must have arrived within this time: slow retries come every 30 s. */
const SETTLE_MS = 4 * MINUTE_MS;
const SETTLE_LOOK_MS = 2 * SECOND_MS;
const SHUTDOWN_DEADLINE_MS = 9 * SECOND_MS;
const END_MS = 20 * SECOND_MS;

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    without: { type: 'string', default: '' },
    volatile: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const minutes = Number(flags.minutes);
const seed = Number(flags.seed);
if (!(minutes > 0 && minutes <= 24 * 60) || !Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31) {
  console.error(
    'usage: npm run chaos -- --minutes N --seed S [--without kill,restart,freeze,line,mood,disk] [--volatile] [--keep]',
  );
  process.exit(2);
}
const without = new Set(flags.without.split(','));
const startedMs = performance.now();
const nowMs = (): number => performance.now() - startedMs;
const say = (line: string): void => console.log(`[${(nowMs() / SECOND_MS).toFixed(1).padStart(7)} s] ${line}`);

const folder = mkdtempSync(join(tmpdir(), 'chaos-'));
const dataFolder = join(folder, 'data');
mkdirSync(dataFolder);
const cleanups: (() => unknown)[] = [];
const violations: string[] = [];
try {
  await main();
} catch (error) {
  violations.push(`the run itself failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}
for (const violation of violations) console.log(`VIOLATION: ${violation}`);
console.log(
  violations.length === 0
    ? 'chaos: no violation'
    : `chaos: ${violations.length} violations, replay with --seed ${seed}`,
);
if (violations.length > 0 || flags.keep) console.log(`kept: ${folder}`);
else rmSync(folder, { recursive: true, force: true });
process.exit(violations.length === 0 ? 0 : 1);

async function main(): Promise<void> {
  console.log(`chaos: ${minutes} minutes, seed ${seed}${flags.volatile ? ', WITHOUT durable acknowledgement' : ''}`);
  const disk = without.has('disk') ? 'left out' : mountSmallDisk(dataFolder, DISK_MIB);
  if (typeof disk === 'string') console.log(`!!! NO SMALL DISK (${disk}): the disk is never full in this run !!!`);
  else cleanups.push(() => disk.unmount());

  const backend = await startBackend();
  const relay = await startRelay(backend.port);
  cleanups.push(() => relay.close());
  let starvedUntilMs = 0;
  const proxy = await createProxy(
    {
      backendUrl: `http://127.0.0.1:${relay.port}`,
      dataFolder,
      logFile: join(folder, 'proxy.log'),
      environment: {
        DURABLE_ACK: String(!flags.volatile),
        SPOOL_DIR: join(dataFolder, 'spool'),
        GENERIC_OTEL_ENABLED: 'true',
        SHIP_SHARDS: '2',
        DECODE_THREADS: '2',
        FLUSH_INTERVAL_MS: '200',
        UPLOAD_TIMEOUT_MS: '3000',
        MAX_RETRIES: '2',
        SPAN_TTL: '5s',
        SHUTDOWN_DEADLINE_MS: String(SHUTDOWN_DEADLINE_MS),
      },
    },
    { isExcused: () => nowMs() < starvedUntilMs, say },
  );
  cleanups.push(() => proxy.close());
  proxy.start();
  await proxy.ready(READY_MS);
  say('ready, load begins');
  const senders = SENDERS.map(({ encoding, gzip }, first) =>
    startSender({
      seed,
      url: `${proxy.url}/v1/traces`,
      first,
      step: SENDERS.length,
      encoding,
      gzip,
      pauseMs: SEND_PAUSE_MS,
      nowMs,
    }),
  );

  const doneCounts = new Map<string, number>();
  const act = async (deed: Deed): Promise<void> => {
    doneCounts.set(deed.kind, (doneCounts.get(deed.kind) ?? 0) + 1);
    switch (deed.kind) {
      case 'kill':
      case 'restart':
      case 'freeze':
        return actOnProcess(proxy, deed);
      case 'line':
        await relay.set(deed.line);
        await sleep(deed.forMs);
        return relay.set('open');
      case 'mood':
        backend.mood(deed.mood);
        await sleep(deed.forMs);
        return backend.mood('nice');
      case 'disk':
        if (typeof disk === 'string') return;
        starvedUntilMs = Number.POSITIVE_INFINITY;
        await starve(disk, deed.forMs);
        // A process that met the full disk as it started may only now come to its end.
        starvedUntilMs = nowMs() + EXCUSED_MS;
        return;
    }
  };
  const plan = drawPlan(seed, minutes * MINUTE_MS);
  const hand = async (deeds: readonly PlannedDeed[]): Promise<void> => {
    for (const { atMs, deed } of deeds) {
      if (without.has(deed.kind) || (deed.kind === 'disk' && typeof disk === 'string')) continue;
      await sleep(Math.max(0, atMs - nowMs()));
      // Where the machine is slow the plan ends with the time, not with its last line.
      if (nowMs() > minutes * MINUTE_MS) return;
      say(describe(deed));
      await act(deed);
    }
  };
  await Promise.all([hand(plan.process), hand(plan.backend), hand(plan.disk)]);
  await sleep(Math.max(0, minutes * MINUTE_MS - nowMs()));

  say('faults are over');
  await proxy.ready(READY_MS);
  await Promise.all(senders.map((sender) => sender.stop()));
  const requests = senders.flatMap((sender) => sender.requests);
  say('load is over');
  const settled = await settle(() => backend.report(), requests);
  const metrics = await readMetrics(proxy.url);
  proxy.signal('SIGTERM');
  const exit = await Promise.race([proxy.ended(), sleep(END_MS, 'none: it did not end')]);
  say(`stopped with exit code ${exit}`);
  const report = await backend.report();
  tell(senders, report, doneCounts, settled, metrics);
  if (exit !== 0) violations.push(`exit code ${exit} after everything could have been delivered`);
  for (const crash of proxy.crashes) violations.push(`the proxy ${crash}`);
}

async function actOnProcess(
  proxy: ProxyProcess,
  deed: Extract<Deed, { kind: 'kill' | 'restart' | 'freeze' }>,
): Promise<void> {
  if (deed.kind === 'freeze') {
    proxy.signal('SIGSTOP');
    await sleep(deed.forMs);
    if (!deed.thenKill) return proxy.signal('SIGCONT');
  }
  const { wasReady } = proxy;
  proxy.signal(deed.kind === 'restart' ? 'SIGTERM' : 'SIGKILL');
  const ended = await Promise.race([proxy.ended(), sleep(SHUTDOWN_DEADLINE_MS + END_MS, null)]);
  if (ended === null) {
    violations.push(`SIGTERM did not end the proxy`);
    proxy.signal('SIGKILL');
    await proxy.ended();
  } else if (deed.kind === 'restart') {
    say(`ended with exit code ${ended}`);
    // Before it is ready it may be ended by the signal itself: it has taken nothing.
    const isOrderly = ended === 0 || ended === 3 || (ended === 'SIGTERM' && !wasReady);
    if (!isOrderly) violations.push(`exit code ${ended} after SIGTERM`);
  }
  if (deed.kind === 'kill') await sleep(deed.pauseMs);
  proxy.start();
}

async function starve(disk: SmallDisk, forMs: number): Promise<void> {
  disk.fill();
  const endMs = nowMs() + forMs;
  // What the proxy gives back is taken too.
  while (nowMs() < endMs) {
    await sleep(200);
    disk.fill();
  }
  disk.free();
}

async function settle(
  read: () => Promise<BackendReport>,
  requests: Parameters<typeof tally>[0],
): Promise<{ missingSpanCount: number; afterMs: number }> {
  const beganMs = nowMs();
  for (;;) {
    const { missingSpanCount } = tally(requests, await read());
    const afterMs = nowMs() - beganMs;
    if (missingSpanCount === 0 || afterMs > SETTLE_MS) return { missingSpanCount, afterMs };
    await sleep(SETTLE_LOOK_MS);
  }
}

function tell(
  senders: readonly Sender[],
  report: BackendReport,
  doneCounts: ReadonlyMap<string, number>,
  settled: { missingSpanCount: number; afterMs: number },
  metrics: string,
): void {
  const requests = senders.flatMap((sender) => sender.requests);
  const result = tally(requests, report);
  const rows: [string, string | number][] = [
    ['done to it', [...doneCounts].map(([kind, count]) => `${kind} ${count}`).join(', ')],
    ['requests', `${result.requestCount}, of them acknowledged ${result.acknowledgedRequestCount}`],
    [
      'exports that failed and were tried again or given up',
      senders.reduce((sum, { failedCount }) => sum + failedCount, 0),
    ],
    ['spans acknowledged', result.acknowledgedSpanCount],
    ['… of them missing at the end', result.missingSpanCount],
    ['spans that arrived', result.arrivedSpanCount],
    ['… of them never acknowledged', result.unacknowledgedArrivedCount],
    ['arrivals beyond the first', result.repeatedCount],
    ['arrivals that were never sent', report.strangerCount],
    ['arrivals that differ from what was sent', report.differenceCount],
    ['uploads', `${report.uploadCount}, taken ${report.takenUploadCount}`],
    [
      'answers',
      Object.entries(report.answersByStatus)
        .map(([status, count]) => `${status}: ${count}`)
        .join(', '),
    ],
    ['redirects followed', report.followedCount],
    ['all arrived after the last fault within', `${(settled.afterMs / SECOND_MS).toFixed(1)} s`],
  ];
  console.log('\ntally');
  for (const [name, value] of rows) console.log(`  ${name.padEnd(54)} ${value}`);
  if (metrics !== '') console.log(`  metrics of the last process:\n${metrics}`);
  if (result.missingSpanCount > 0) {
    violations.push(`${result.missingSpanCount} acknowledged spans never arrived:\n  ${result.missing.join('\n  ')}`);
  }
  if (report.strangerCount > 0) {
    violations.push(`${report.strangerCount} arrived that nobody sent:\n  ${report.strangers.join('\n  ')}`);
  }
  if (report.differenceCount > 0) {
    violations.push(`${report.differenceCount} arrived changed:\n  ${report.differences.join('\n  ')}`);
  }
  if (report.followedCount > 0) violations.push(`${report.followedCount} redirects were followed`);
  if (result.acknowledgedSpanCount === 0) violations.push('nothing was acknowledged: the run shows nothing');
}

/** What the last process counted and is not zero, for the reader of the tally. */
async function readMetrics(url: string): Promise<string> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const wanted =
    /^collector_proxy_(spans|runs|records|upload|spool|journal|bodies|decode_workers|ship_workers)(?!\w*_seconds)\w*(\{.*\})? [^0]/;
  return text
    .split('\n')
    .filter((line) => wanted.test(line))
    .map((line) => `    ${line}`)
    .join('\n');
}

async function startBackend(): Promise<{ port: number; mood(mood: Mood): void; report(): Promise<BackendReport> }> {
  const child = fork(fileURLToPath(new URL('./backend.ts', import.meta.url)), [String(seed)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    serialization: 'advanced',
  });
  cleanups.push(() => child.kill('SIGKILL'));
  child.once('exit', () => violations.length === 0 && say('the backend process has ended'));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return {
    port,
    mood: (mood) => void child.send({ mood }),
    report: async () => {
      const answered = once(child, 'message');
      child.send('report');
      return ((await answered) as [BackendReport])[0];
    },
  };
}
