/** What people do with the console: look at their first trace, narrow the list, compare, and all of it by keyboard. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { NO_BROWSER, openStage, until, type Stage } from './browser.ts';
import { failingReport, makeScenario, retrieval, send, sendWorkload, supportAgent, vision } from './workload.ts';

const rows = (page: Page) => page.locator('.traces-body [role=row]');
const detail = (page: Page) => page.locator('#run-panel');

describe('a newcomer’s first minute', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  before(async () => {
    stage = await openStage();
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  test('an empty list says how to send a trace; what is sent then appears by itself, and its tool call is found', async () => {
    const { page } = await stage.open('/');
    await page.getByRole('heading', { name: 'No traces yet' }).waitFor();
    assert.match(await page.locator('.empty').innerText(), new RegExp(`OTEL_EXPORTER_OTLP_ENDPOINT=${stage.base}`));
    assert.equal(await page.title(), 'Traces · Collector Proxy');

    const sent = makeScenario(supportAgent, { seed: 3, endMs: Date.now(), durationMs: 2500 });
    await send(stage.base, sent.body, 'support');
    const row = rows(page).first();
    await row.waitFor();
    const runCount = row.getByRole('gridcell').nth(7);
    await until(async () => (await runCount.innerText()) === '5', 'all runs of the trace');
    const shown = await row.innerText();
    assert.match(shown, /support[\s\S]*2\.5 s/);
    assert.match(shown, /\$0\.00/);

    await row.getByRole('link').click();
    const tree = page.getByRole('treegrid', { name: 'Runs' });
    await until(async () => (await tree.getByRole('row').count()) === 6, 'five runs and a head');
    await tree.getByText('lookup_order').click();
    await detail(page).getByText('order_id').waitFor();
    assert.match(await detail(page).innerText(), /Arguments[\s\S]*A-1042[\s\S]*Result[\s\S]*in transit/);
    assert.match(page.url(), /\/console\/trace\/[\da-f-]{36}\?run=[\da-f-]{36}$/);

    // The model's side of it: a conversation, with the call in it and markdown in the answer.
    await tree.getByText('chat gpt-4o').last().click();
    await detail(page).getByText('lookup_order').first().waitFor();
    assert.equal(await detail(page).locator('.message-assistant table').count(), 1);
    assert.equal(await detail(page).locator('.message-tool').count(), 1);
  });

  test('a link to a run shows that run', async () => {
    const { page } = await stage.open('/');
    await rows(page).first().getByRole('link').click();
    await page.getByText('lookup_order').first().click();
    const link = new URL(page.url());
    const other = await stage.open(`${link.pathname}${link.search}`);
    await other.page.locator('.detail-title').getByText('lookup_order').waitFor();
  });

  test('a run is copied as JSON, as a command that fetches it, and as a link to it', async () => {
    const { page } = await stage.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
    await rows(page).first().getByRole('link').click();
    await page.getByText('lookup_order').first().click();
    await detail(page).getByText('order_id').waitFor();
    const copied = async (name: string): Promise<string> => {
      await page.evaluate(() => navigator.clipboard.writeText(''));
      await page.locator('.detail-bar').getByRole('button', { name, exact: true }).click();
      let text = '';
      await until(
        async () => (text = await page.evaluate(() => navigator.clipboard.readText())) !== '',
        `${name} copied`,
      );
      return text;
    };
    const run = JSON.parse(await copied('JSON')) as { id: string; inputs: object };
    assert.deepEqual(run.inputs, { order_id: 'A-1042' });
    const url = /^curl '([^']+)'$/.exec(await copied('curl'))?.[1] ?? '';
    assert.equal(((await (await fetch(url)).json()) as { id: string }).id, run.id);
    assert.equal(await copied('Link'), page.url());
    assert.equal(new URL(page.url()).searchParams.get('run'), run.id);
  });

  test('a trace that is looked at grows by itself', async () => {
    const whole = makeScenario(retrieval, { seed: 11, endMs: Date.now(), durationMs: 1500 });
    const request = JSON.parse(whole.body) as { resourceSpans: { scopeSpans: { spans: object[] }[] }[] };
    const scope = request.resourceSpans[0]?.scopeSpans[0];
    assert.ok(scope !== undefined);
    const [root, ...below] = scope.spans;
    scope.spans = [root ?? {}];
    await send(stage.base, JSON.stringify(request), 'handbook');
    const { page } = await stage.open('/?project=handbook');
    await rows(page).first().getByRole('link').click();
    await page.getByText('1 runs', { exact: true }).waitFor();
    scope.spans = below;
    await send(stage.base, JSON.stringify(request), 'handbook');
    await page.getByText('4 runs', { exact: true }).waitFor();
    await page.getByText('search_handbook').click();
    await detail(page).getByText('brakes.md').first().waitFor();
    assert.equal(await detail(page).locator('.documents li').count(), 3);
  });

  test('pictures and reasoning are shown, errors with their stack', async () => {
    await send(stage.base, makeScenario(vision, { seed: 12, endMs: Date.now(), durationMs: 900 }).body, 'workshop');
    await send(
      stage.base,
      makeScenario(failingReport, { seed: 13, endMs: Date.now(), durationMs: 900 }).body,
      'reports',
    );
    const { page } = await stage.open('/?project=workshop');
    await rows(page).first().getByRole('link').click();
    await page.getByRole('treegrid').getByText('chat gpt-4o').click();
    const picture = detail(page).getByRole('img', { name: 'In the message' });
    await picture.waitFor();
    await until(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth === 64), 'the picture');
    assert.match(await detail(page).locator('.reasoning').innerText(), /may be a light/);

    const failed = await stage.open('/?project=reports');
    await rows(failed.page).first().getByRole('link').click();
    await failed.page.getByRole('button', { name: /2 failed/ }).click();
    await failed.page.locator('.detail-title').getByText('fetch_figures').waitFor();
    await until(async () => /runTool \(\/srv\/agent/.test(await detail(failed.page).innerText()), 'the stack');
  });
});

describe('a list of some length', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  const COUNT = 300;
  before(async () => {
    stage = await openStage();
    const spanCount = await sendWorkload(stage.base, {
      seed: 5,
      traceCount: COUNT,
      spanMs: 3_600_000,
      endMs: Date.now(),
    });
    // Of a trace whose last runs are still on their way, the filters would say one thing now and another later.
    await until(async () => (await stats('')).run_count === spanCount, 'all runs to be stored');
    assert.equal(await traceCount(''), COUNT);
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  /** What the API says about a filter. */
  async function stats(query: string): Promise<{ trace_count: number; run_count: number }> {
    const answer = await fetch(`${stage.base}/api/stats?${query}`);
    return (await answer.json()) as { trace_count: number; run_count: number };
  }
  const traceCount = async (query: string): Promise<number> => (await stats(query)).trace_count;
  const shownCount = async (page: Page): Promise<number> =>
    Number((await page.locator('.figures dd').first().innerText()).replaceAll(',', ''));

  test('every filter narrows the list to what the API says, and stands in the address', async () => {
    const { page } = await stage.open('/');
    await until(async () => (await shownCount(page)) === COUNT, 'all traces');
    await page.getByLabel('Project').selectOption('support');
    await page.getByLabel('Contains a run of type').selectOption('tool');
    const query = 'project=support&run_type=tool';
    const expected = await traceCount(query);
    assert.ok(expected > 0 && expected < COUNT);
    await until(async () => (await shownCount(page)) === expected, 'the narrowed count');
    assert.equal(new URL(page.url()).search, `?${query}`);
    // The figures may be there before the rows.
    await page.locator('.stale').waitFor({ state: 'detached' });
    assert.ok((await rows(page).count()) > 0);
    for (const text of await rows(page).allInnerTexts()) assert.match(text, /\bsupport\b/);

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Errors only').check();
    const failed = await traceCount('error=true');
    await until(async () => (await shownCount(page)) === failed, 'the failed ones');

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Minimum duration').fill('4s');
    const slow = await traceCount('min_duration_ms=4000');
    assert.ok(slow > 0 && slow < COUNT);
    await until(async () => (await shownCount(page)) === slow, 'the slow ones');

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Search', { exact: true }).fill('warranty');
    const found = await traceCount('text=warranty');
    assert.ok(found > 0 && found < COUNT);
    await until(async () => (await shownCount(page)) === found, 'the found ones');

    await page.getByLabel('Search', { exact: true }).fill('nosuchword');
    await page.getByRole('heading', { name: 'No trace passes this filter' }).waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await until(async () => (await shownCount(page)) === COUNT, 'all again');
  });

  test('dragging over the histogram narrows to that time, and a rectangle to durations as well', async () => {
    const { page } = await stage.open('/');
    const chart = page.locator('.heatmap .u-over');
    await chart.waitFor();
    const drag = async (from: [number, number], to: [number, number]): Promise<void> => {
      const box = await chart.boundingBox();
      assert.ok(box !== null);
      await page.mouse.move(box.x + box.width * from[0], box.y + box.height * from[1]);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * to[0], box.y + box.height * to[1], { steps: 8 });
      await page.mouse.up();
    };
    await drag([0.5, 0.5], [0.8, 0.52]);
    await page.waitForURL(/since=\d+&until=\d+/);
    const wide = new URL(page.url()).searchParams;
    assert.equal(wide.get('min_duration_ms'), null);
    const some = await traceCount(wide.toString());
    assert.ok(some > 0 && some < COUNT, `${some}`);
    await until(async () => (await shownCount(page)) === some, 'the dragged time');

    await drag([0.1, 0.1], [0.9, 0.6]);
    await page.waitForURL(/min_duration_ms=\d+/);
    const narrow = new URL(page.url()).searchParams;
    const fewer = await traceCount(narrow.toString());
    assert.ok(fewer < some, `${fewer} of ${some}`);
    await until(async () => (await shownCount(page)) === fewer, 'the dragged rectangle');
  });

  test('what arrives while one reads further down moves nothing, and is told', async () => {
    const { page } = await stage.open('/');
    await rows(page).first().waitFor();
    // It stands above the list, which it pushes down when it comes.
    await page.locator('.heatmap canvas').waitFor();
    const list = page.locator('.traces-scroll');
    await list.evaluate((element) => (element.scrollTop = 1500));
    const inView = page.locator('.traces-body [role=row][aria-rowindex="60"]');
    await inView.waitFor();
    const text = await inView.locator('.trace-name a').evaluate((link) => (link as HTMLAnchorElement).href);
    const before = await page.locator(`a[href="${new URL(text).pathname}"]`).boundingBox();
    const { body } = makeScenario(supportAgent, { seed: 77, endMs: Date.now(), durationMs: 10 });
    await send(stage.base, body, 'support');
    await page.getByRole('button', { name: '1 new' }).waitFor();
    const afterwards = await page.locator(`a[href="${new URL(text).pathname}"]`).boundingBox();
    assert.equal(afterwards?.y, before?.y);
    await page.getByRole('button', { name: '1 new' }).click();
    await until(() => list.evaluate((element) => element.scrollTop === 0), 'the top');
  });

  test('the end is come to while the newest page is being read again: older ones follow', async () => {
    const { page } = await stage.open('/console/pipeline');
    let readCount = 0;
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    // The second reading is by the live stream, once it is connected.
    await page.route('**/api/traces?*', async (route) => {
      if (++readCount === 2) await held;
      await route.continue();
    });
    await page.getByRole('link', { name: 'Traces' }).click();
    await rows(page).first().waitFor();
    await until(() => readCount === 2, 'the second reading');
    await page.keyboard.press('End');
    await page.locator('.trace-row.at-cursor[aria-rowindex="201"]').waitFor();
    await page.evaluate(
      () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
    );
    answer();
    await until(
      async () =>
        Number(await page.getByRole('grid', { name: 'Traces' }).getAttribute('aria-rowcount')) ===
        (await traceCount('')) + 1,
      'all of them',
    );
  });

  test('a failure is told, and overcome', async () => {
    const { page } = await stage.open('/', { allowed: /50[03]|ERR_FAILED|Failed to load/ });
    await rows(page).first().waitFor();
    let refusedCount = 0;
    await page.route('**/api/traces?*', (route) => {
      refusedCount++;
      return route.fulfill({ status: 503, body: '{"error":"busy for a test"}' });
    });
    await page.getByLabel('Status').selectOption('error');
    await page.getByRole('alert').getByText('busy for a test').waitFor();
    // The list is read a second time by itself, once its live stream is connected; not a third time.
    await until(() => refusedCount === 2, 'both attempts');
    await page.unroute('**/api/traces?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await rows(page).first().waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  test('two marked traces are compared: structure, times, and what came out', async () => {
    const { page } = await stage.open('/?project=support&run_type=tool');
    await rows(page).nth(1).waitFor();
    await rows(page).nth(0).getByRole('checkbox').check();
    await rows(page).nth(1).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    const pairs = page.getByRole('treegrid', { name: 'Runs of both' });
    await until(async () => (await pairs.getByRole('row').count()) === 6, 'five pairs and a head');
    for (const pair of (await pairs.getByRole('row').allInnerTexts()).slice(1)) assert.match(pair, /[+−=]/);
    await pairs.getByText('lookup_order').click();
    await page.getByRole('heading', { name: 'lookup_order' }).waitFor();
    await page.getByText('Both are the same.').first().waitFor();
  });

  test('traces that differ show what only one has', async () => {
    const ids = await Promise.all(
      ['project=support&run_type=tool', 'project=handbook'].map(async (query) => {
        const answer = await fetch(`${stage.base}/api/traces?limit=1&${query}`);
        return ((await answer.json()) as { items: { trace_id: string }[] }).items[0]?.trace_id ?? '';
      }),
    );
    const { page } = await stage.open(`/console/compare/${ids.join('/')}`);
    const pairs = page.getByRole('treegrid', { name: 'Runs of both' });
    await pairs.getByText('only in A').first().waitFor();
    assert.ok((await pairs.getByText('only in B').count()) > 0);
    await page.locator('.diff ins').first().waitFor();
    assert.ok((await page.locator('.diff del').count()) > 0);
  });

  test('everything can be done without a pointer', async () => {
    const { page } = await stage.open('/');
    await rows(page).nth(3).waitFor();
    const { keyboard } = page;
    await keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    assert.match(await page.getByRole('dialog').innerText(), /Mark to compare/);
    await keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    await keyboard.press('/');
    await keyboard.type('A-1042');
    await page.waitForURL(/text=A-1042/);
    // Typed into the field, not taken as commands.
    assert.equal(await page.getByLabel('Search', { exact: true }).inputValue(), 'A-1042');
    await keyboard.press('Escape');
    await page.locator('.stale').waitFor({ state: 'detached' });
    await keyboard.press('j');
    await keyboard.press('j');
    await keyboard.press('k');
    const cursor = page.locator('.trace-row.at-cursor');
    assert.equal(await cursor.getAttribute('aria-rowindex'), '2');
    await keyboard.press('Enter');
    const tree = page.getByRole('treegrid', { name: 'Runs' });
    await tree.getByText('lookup_order').waitFor();
    await keyboard.press('j');
    await keyboard.press('j');
    await page.locator('.detail-title').getByText('lookup_order').waitFor();
    await keyboard.press('ArrowLeft');
    await tree.getByText('GET /orders/{id}').waitFor({ state: 'detached' });
    await keyboard.press('ArrowRight');
    await tree.getByText('GET /orders/{id}').waitFor();
    await keyboard.press('2');
    await page.getByRole('tab', { name: 'Metadata', selected: true }).waitFor();
    await keyboard.press('Enter');
    await until(() => page.evaluate(() => document.activeElement?.id === 'run-panel'), 'the detail to have the focus');
    await keyboard.press('Escape');
    await keyboard.press('Escape');
    await page.waitForURL(/\/console\/traces$/);

    await rows(page).nth(3).waitFor();
    await keyboard.press('j');
    await keyboard.press('x');
    await keyboard.press('j');
    await keyboard.press('x');
    await keyboard.press('c');
    await page.waitForURL(/\/console\/compare\//);
    await page.getByRole('treegrid', { name: 'Runs of both' }).waitFor();
    // Both at once: they belong together for a moment only, which the page may spend on the comparison.
    await Promise.all([keyboard.press('g'), keyboard.press('t')]);
    await page.waitForURL(/\/console\/traces$/);
  });
});

describe('a console behind keys', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  before(async () => {
    stage = await openStage({ DEPLOYMENT_API_KEYS: 'the-key' });
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  test('asks for one, says when it is wrong, and keeps it for the tab', async () => {
    await send(stage.base, makeScenario(supportAgent, { seed: 4, endMs: Date.now(), durationMs: 100 }).body);
    const { page } = await stage.open('/', { allowed: /401/ });
    await page.getByLabel('API key').fill('another');
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByRole('alert').getByText('not accepted').waitFor();
    await page.getByLabel('API key').fill('the-key');
    await page.getByRole('button', { name: 'Open the console' }).click();
    await rows(page).first().waitFor();
    // Live, too: the stream brings the key along.
    await send(stage.base, makeScenario(vision, { seed: 6, endMs: Date.now(), durationMs: 100 }).body);
    await page.getByText('describe_damage').waitFor();
    await page.reload();
    await rows(page).first().waitFor();
    assert.doesNotMatch(page.url(), /the-key/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
  });
});
