/** Every page, dark and light, for everyone: the accessibility checker finds nothing, and the system's choice of colours is followed. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { accessibilityProblems, NO_BROWSER, openStage, until, type Stage } from './browser.ts';
import { failingReport, makeScenario, retrieval, send, sendWorkload, supportAgent, vision } from './workload.ts';

describe('the look of the pages', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  const ids: string[] = [];
  before(async () => {
    stage = await openStage();
    let spanCount = await sendWorkload(stage.base, {
      seed: 2,
      traceCount: 60,
      spanMs: 600_000,
      endMs: Date.now() - 1000,
    });
    for (const [index, scenario] of [supportAgent, retrieval, failingReport, vision].entries()) {
      const trace = makeScenario(scenario, { seed: 900 + index, endMs: Date.now(), durationMs: 2000 });
      const { body, traceId } = trace;
      spanCount += trace.spanCount;
      ids.push(traceId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));
      await send(stage.base, body, 'look');
    }
    await until(async () => {
      const answer = await fetch(`${stage.base}/api/stats`);
      return ((await answer.json()) as { run_count: number }).run_count === spanCount;
    }, 'all runs');
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  const panel = (title: string, content: string): string =>
    `.detail:has(.detail-title h2:text-is("${title}")) #run-panel ${content}`;
  /** `brought`: what is shown once the keys were taken. */
  const pages: [name: string, path: () => string, ready: string, keys: readonly string[], brought: string][] = [
    ['the list', () => '/', '.traces-body [role=row]', ['j', 'x'], '.bar button:text-is("Unmark")'],
    [
      'the narrowed list',
      () => '/?project=look&min_duration_ms=10&since=0',
      '.traces-body [role=row]',
      [],
      '.heatmap canvas',
    ],
    ['a list that nothing passes', () => '/?text=nosuchword', '.empty', [], '.figures'],
    ['an agent’s trace', () => `/console/trace/${ids[0]}`, '.waterfall', ['j'], panel('chat gpt-4o', '.message')],
    [
      'a retriever’s trace',
      () => `/console/trace/${ids[1]}`,
      '.waterfall',
      ['j', 'j'],
      panel('search_handbook', '.documents'),
    ],
    ['a failed trace', () => `/console/trace/${ids[2]}`, '.waterfall', ['e'], panel('fetch_figures', '.stack')],
    ['a trace with a picture', () => `/console/trace/${ids[3]}`, '.waterfall', ['j'], panel('chat gpt-4o', 'img')],
    ['a run as JSON', () => `/console/trace/${ids[3]}`, '.waterfall', ['3'], panel('describe_damage', '.json')],
    ['metadata', () => `/console/trace/${ids[0]}`, '.waterfall', ['j', '2'], panel('chat gpt-4o', '.pairs')],
    [
      'a comparison',
      () => `/console/compare/${ids[0]}/${ids[2]}`,
      '.pair-row',
      ['j'],
      '.pair-row.at-cursor[aria-rowindex="3"]',
    ],
    ['a choice of another', () => `/console/compare/${ids[0]}`, '.choose li', [], '.choose'],
    ['a trace that is not there', () => '/console/trace/00000000-0000-4000-8000-000000000000', '.empty', [], '.empty'],
    ['a page that is not there', () => '/console/nothing', '.empty', [], '.empty'],
    ['the keyboard overview', () => '/', '.traces-body [role=row]', ['?'], 'dialog[open]'],
  ];
  for (const colorScheme of ['dark', 'light'] as const) {
    for (const [name, path, ready, keys, brought] of pages) {
      test(`${name}, ${colorScheme}: nothing to object to`, async () => {
        const { page } = await stage.open(path(), { colorScheme, allowed: /404/ });
        await page.locator(ready).first().waitFor();
        for (const key of keys) await page.keyboard.press(key);
        await page.locator(brought).first().waitFor();
        await page.locator('.stale').waitFor({ state: 'detached' });
        assert.deepEqual(await accessibilityProblems(page), []);
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(background, colorScheme === 'dark' ? 'rgb(14, 16, 22)' : 'rgb(255, 255, 255)');
      });
    }
  }

  test('a change of the system’s colours is followed at once, in the histogram as well', async () => {
    const { page } = await stage.open('/', { colorScheme: 'light' });
    const canvas = page.locator('.heatmap canvas');
    await canvas.waitFor();
    const drawn = (): Promise<string> => canvas.evaluate((element) => (element as HTMLCanvasElement).toDataURL());
    const light = await drawn();
    await page.emulateMedia({ colorScheme: 'dark' });
    await until(async () => (await canvas.count()) === 1 && (await drawn()) !== light, 'other colours');
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(14, 16, 22)');
  });

  test('a narrow window loses nothing', async () => {
    const { page } = await stage.open('/', { viewport: { width: 700, height: 800 } });
    await page.locator('.traces-body [role=row]').first().waitFor();
    await page.locator('.heatmap canvas').waitFor();
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(overflow, 0);
  });
});
