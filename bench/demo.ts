/**
 * `npm run demo`: sends the workload of a few agents through official OpenTelemetry exporters, waits until it has become
 * runs, and shows them as trees, read back from the backend. Uses the collector that `npm run dev` started, or one of its
 * own. Exit code 0 when everything arrived, 1 when not, with the reason.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { TraceDetail, TraceRun } from '../src/backend/api.ts';
import { type BackendClient, createBackendClient } from '../src/backend/client.ts';
import { createPaint, traceText } from './demo/print.ts';
import { type DemoProxy, findProxy, startProxy } from './demo/proxy.ts';
import { createService, type Service } from './demo/services.ts';
import { type DemoServices, runWorkload, type SentTrace } from './demo/workload.ts';

const USAGE = `npm run demo -- [options]

  --url URL       a collector that runs already (also COLLECTOR_URL); otherwise http://127.0.0.1:4318 when one answers
                  there, else one of the demo's own, on a free port, stopped at the end
  --own           one of the demo's own in any case
  --backend URL   where to read the runs back; otherwise the collector itself or its embedded backend's usual port
  --key KEY       API key to send (also SERVICE_API_KEY); none by default
  --wait SECONDS  how long the runs may take to arrive (20)
  --help
`;

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    own: { type: 'boolean', default: false },
    backend: { type: 'string' },
    key: { type: 'string' },
    wait: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
});
const paint = createPaint(process.stdout.isTTY && process.env['NO_COLOR'] === undefined);

if (values.help) console.log(USAGE);
else process.exitCode = (await demo()) ? 0 : 1;

async function demo(): Promise<boolean> {
  let proxy: DemoProxy;
  try {
    proxy = values.own
      ? await startProxy()
      : await findProxy(values.url ?? process.env['COLLECTOR_URL'] ?? null, values.backend ?? null);
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
  try {
    return await show(proxy);
  } finally {
    await proxy.stop();
  }
}

async function show(proxy: DemoProxy): Promise<boolean> {
  console.log(`\nCollector  ${proxy.url}${proxy.own ? '  (started for this demo)' : ''}`);
  const key = values.key ?? process.env['SERVICE_API_KEY'];
  const headers = { 'Service-Project': 'demo', ...(key === undefined ? {} : { 'X-API-Key': key }) };
  const tracesUrl = `${proxy.url}/v1/traces`;
  const services: DemoServices = {
    // One span a request, sent as it ends: children reach the collector before their parents, in requests of their own.
    agent: createService({ name: 'support-agent', encoding: 'json', batched: false }, tracesUrl, headers),
    orders: createService({ name: 'orders-api', encoding: 'protobuf', batched: false }, tracesUrl, headers),
    search: createService({ name: 'search', encoding: 'protobuf', batched: true }, tracesUrl, headers),
    reports: createService({ name: 'reports', encoding: 'json', batched: true }, tracesUrl, headers),
  };
  const all = Object.values(services) as Service[];
  const sent = runWorkload(services, Date.now());
  const from = performance.now();
  await Promise.all(all.map((service) => service.finish()));
  for (const { name, encoding, exportedCount, requestCount } of all) {
    const text = `${exportedCount} spans in ${requestCount} requests, ${encoding}`;
    console.log(`Sent       ${name.padEnd(14)} ${text}`);
  }
  const failures = all.flatMap((service) => service.failures);
  if (failures.length > 0) return fail(`the collector did not take everything:\n  ${failures.join('\n  ')}`);
  if (proxy.backendUrl === null) {
    return fail(
      `the spans were taken, but there is no embedded backend to read the runs back from at ${proxy.url} or its usual port; ` +
        'is this collector uploading elsewhere? --backend tells where to look.',
    );
  }
  const client = createBackendClient(proxy.backendUrl);
  const arrived = await waitForAll(client, sent, Number(values.wait) * 1000);
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  console.log(`Arrived    at ${proxy.backendUrl} after ${seconds} s\n`);
  return report(sent, arrived);
}

type Detail = TraceDetail & { readonly runs: readonly TraceRun[] };

/** By trace id as the runs have it. Ends when all are complete, or the time is over. */
async function waitForAll(
  client: BackendClient,
  sent: readonly SentTrace[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, Detail>> {
  const found = new Map<string, Detail>();
  const look = async (): Promise<boolean> => {
    for (const { traceId, spanCount } of sent) {
      if ((found.get(traceId)?.runs.length ?? 0) >= spanCount) continue;
      const detail = await client.trace(uuidOf(traceId));
      if (detail !== null) found.set(traceId, detail);
    }
    return sent.every(({ traceId, spanCount }) => (found.get(traceId)?.runs.length ?? 0) >= spanCount);
  };
  const done = new AbortController();
  const events = client.events(AbortSignal.any([done.signal, AbortSignal.timeout(timeoutMs)]));
  try {
    for await (const _event of events) if (await look()) break;
  } finally {
    done.abort();
  }
  // Twice the number would be as wrong as half of it; those that come late come soon.
  await sleep(100);
  for (const { traceId } of sent) {
    const detail = await client.trace(uuidOf(traceId));
    if (detail !== null) found.set(traceId, detail);
  }
  return found;
}

/** The trace id of OpenTelemetry as the id of the root run. */
function uuidOf(traceId: string): string {
  return traceId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function report(sent: readonly SentTrace[], arrived: ReadonlyMap<string, Detail>): boolean {
  const problems: string[] = [];
  for (const { traceId, title, spanCount } of sent) {
    const detail = arrived.get(traceId);
    console.log(paint.bold(title));
    if (detail === undefined) {
      console.log(`  ${paint.red('nothing arrived')}\n`);
      problems.push(`${title}: nothing arrived of ${spanCount} spans (trace ${traceId})`);
      continue;
    }
    console.log(`${traceText(detail, paint)}\n`);
    const { runs, misplaced_run_ids: misplaced } = detail;
    if (runs.length !== spanCount) problems.push(`${title}: ${runs.length} runs of ${spanCount} spans`);
    const orphans = runs.filter((run) => run.orphan);
    if (orphans.length > 0) problems.push(`${title}: no parent for ${orphans.map((run) => run.name).join(', ')}`);
    if (misplaced.length > 0) problems.push(`${title}: wrong dotted_order of ${misplaced.join(', ')}`);
  }
  if (problems.length > 0) return fail(problems.join('\n  '));
  const runCount = sent.reduce((sum, { spanCount }) => sum + spanCount, 0);
  console.log(paint.green(`All ${runCount} spans arrived as runs of ${sent.length} traces, each below its parent.\n`));
  return true;
}

function fail(reason: string): boolean {
  console.error(`\n${paint.red('Not everything worked:')}\n  ${reason}\n`);
  return false;
}
