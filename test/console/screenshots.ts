/**
 * `npm run screenshots [-- NAME…]`: makes the pictures of the README from a workload of its own. Each is a page as it is
 * after the keys were pressed; without names, all of them.
 */
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { openStage, until } from './browser.ts';
import { makeScenario, send, sendWorkload, supportAgent } from './workload.ts';

interface Shot {
  readonly name: string;
  readonly colorScheme: 'dark' | 'light';
  readonly path: (ids: readonly string[]) => string;
  readonly ready: string;
  readonly prepare?: (page: Page) => Promise<void>;
}

const press =
  (...keys: readonly string[]) =>
  async (page: Page): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key);
  };

const SHOTS: readonly Shot[] = [
  { name: 'traces', colorScheme: 'dark', path: () => '/', ready: '.traces-body [role=row]', prepare: press('j', 'j') },
  {
    name: 'trace',
    colorScheme: 'dark',
    path: ([id]) => `/console/trace/${id}`,
    ready: '#run-panel .message',
    prepare: press('j', 'j', 'j', 'j'),
  },
  {
    name: 'trace-light',
    colorScheme: 'light',
    path: ([id]) => `/console/trace/${id}`,
    ready: '#run-panel .message',
    prepare: press('j'),
  },
  {
    name: 'compare',
    colorScheme: 'light',
    path: (ids) => `/console/compare/${ids[0]}/${ids[1]}`,
    ready: '.part',
    prepare: press('j'),
  },
  { name: 'pipeline', colorScheme: 'dark', path: () => '/console/pipeline?minutes=1', ready: '.stage-well' },
  {
    name: 'playground',
    colorScheme: 'dark',
    path: () => '/console/deployments/playground',
    ready: '#composer',
    prepare: async (page) => {
      await page.keyboard.press('i');
      await page.keyboard.type('How is the weather in Paris?');
      await page.keyboard.press('Enter');
      await page.getByText('The weather is windy').waitFor();
    },
  },
  {
    name: 'time-travel',
    colorScheme: 'light',
    path: () => '/console/deployments/playground',
    ready: '#composer',
    prepare: async (page) => {
      await page.getByLabel('Assistant').selectOption({ label: 'approval' });
      await page.getByLabel('Input as JSON').fill('{"topic": "collectors"}');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByLabel('Your answer').waitFor();
      await press('3')(page);
      await page.getByRole('article', { name: 'Thread' }).waitFor();
      await press('h')(page);
      await page.getByRole('button', { name: 'Change and fork' }).click();
    },
  },
];

const SIZE = { width: 1280, height: 760 };
const QUALITY = 84;
const TRACE_COUNT = 700;
const SETTLE_MS = 1500;

const wanted = new Set(process.argv.slice(2));
const stage = await openStage({
  DEPLOYMENT_TRACING: 'true',
  DEPLOYMENT_CONFIG: 'src/deploy/examples/langgraph.json',
});
try {
  const endMs = Date.now();
  await sendWorkload(stage.base, { seed: 7, traceCount: TRACE_COUNT, spanMs: 3 * 3_600_000, endMs: endMs - 20_000 });
  const ids: string[] = [];
  for (const [index, durationMs] of [4210, 2630].entries()) {
    const { body, traceId } = makeScenario(supportAgent, {
      seed: 40 + 7 * index,
      endMs: endMs - 1000 * index,
      durationMs,
    });
    ids.push(traceId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));
    await send(stage.base, body, 'support');
  }
  await until(async () => {
    const answer = await fetch(`${stage.base}/api/stats`);
    return ((await answer.json()) as { trace_count: number }).trace_count === TRACE_COUNT + ids.length;
  }, 'all traces');
  for (const { name, colorScheme, path, ready, prepare } of SHOTS) {
    if (wanted.size > 0 && !wanted.has(name)) continue;
    const { page } = await stage.open(path(ids), { colorScheme, viewport: SIZE });
    await page.locator(ready).first().waitFor();
    await prepare?.(page);
    // Charts and details are drawn.
    await page.waitForTimeout(SETTLE_MS);
    const file = fileURLToPath(new URL(`./screenshots/${name}.jpg`, import.meta.url));
    await page.screenshot({ path: file, type: 'jpeg', quality: QUALITY });
    console.log(file);
    await page.close();
  }
} finally {
  await stage.close();
}
