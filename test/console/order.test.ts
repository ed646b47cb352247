/** Whatever comes first: keys that are faster than the next frame, events that overtake answers, answers to what is over. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, mock, test } from 'node:test';
import { signal } from '@preact/signals';
import type { Page as PageOf, TraceEvent, TraceSummary } from '../../src/backend/api.ts';
import { createClient, type Client, type Follower } from '../../src/console/app/api/client.ts';
import { followTraces } from '../../src/console/app/pages/traces/list.ts';
import { NO_BROWSER, openStage, until, type Stage } from './browser.ts';
import { makeScenario, retrieval, send, supportAgent } from './workload.ts';

describe('the list of traces, whatever comes first', () => {
  const trace = (id: string, second: number, runCount = 1): TraceSummary =>
    ({
      trace_id: id,
      tenant: '',
      start_time: `2026-03-18T10:00:${String(second).padStart(2, '0')}Z`,
      run_count: runCount,
    }) as TraceSummary;
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  /** A list whose requests are answered, and whose stream tells, when the test says so. */
  function open() {
    const answers: ((page: readonly TraceSummary[]) => void)[] = [];
    let follower: Follower | null = null;
    const api = {
      get: () =>
        new Promise((resolve) =>
          answers.push((items) => resolve({ items, next_cursor: null } satisfies PageOf<object>)),
        ),
      follow: (_path: string, given: Follower) => (follower = given),
    } as unknown as Client;
    const list = followTraces(api, {});
    return {
      list,
      requestCount: () => answers.length,
      answer: async (at: number, ...page: TraceSummary[]) => {
        answers[at]?.(page);
        await settled();
      },
      tell: (event: string, change: Partial<TraceEvent> = {}) =>
        follower?.onEvent({
          event,
          data: JSON.stringify({ traces: [], unmatched_trace_ids: [], omitted_count: 0, ...change }),
          id: undefined,
        }),
      shown: () => list.items.value.map(({ trace_id, run_count }) => `${trace_id}${run_count}`).join(' '),
    };
  }

  test('what is told while a page is on its way outlasts the page, which was put together before', async () => {
    const { answer, tell, shown } = open();
    await answer(0, trace('a', 1), trace('b', 0));
    tell('ready');
    tell('traces', { traces: [trace('c', 2), trace('a', 1, 5)], unmatched_trace_ids: ['b'] });
    assert.equal(shown(), 'c1 a5');
    await answer(1, trace('a', 1), trace('b', 0));
    assert.equal(shown(), 'c1 a5');
  });

  test('a stream that is connected while the first page is on its way has it read once more', async () => {
    const { answer, tell, shown, requestCount, list } = open();
    tell('ready');
    assert.equal(requestCount(), 1);
    await answer(0);
    assert.equal(requestCount(), 2);
    assert.equal(list.loading.value, true);
    // It came after the first was put together, and before the stream was there to tell.
    await answer(1, trace('a', 1));
    assert.equal(shown(), 'a1');
    assert.equal(requestCount(), 2);
    assert.equal(list.loading.value, false);
  });

  test('a list that is left reads nothing more', async () => {
    const { answer, tell, requestCount, list } = open();
    tell('ready');
    list.stop();
    await answer(0);
    assert.equal(requestCount(), 1);
  });
});

test('a late refusal of the key before does not ask for the one that is in force', async () => {
  const answers: ((response: Response) => void)[] = [];
  const fetched = mock.method(globalThis, 'fetch', () => new Promise<Response>((resolve) => answers.push(resolve)));
  try {
    const key = { value: signal('wrong'), wanted: signal(false), set: () => undefined, clear: () => undefined };
    const client = createClient({ key, base: () => '' });
    const refused = Promise.all([client.get('/one'), client.get('/two')].map((each) => assert.rejects(each)));
    answers[0]?.(new Response('{}', { status: 401 }));
    await until(() => key.wanted.value, 'the key to be asked for');
    key.value.value = 'right';
    key.wanted.value = false;
    answers[1]?.(new Response('{}', { status: 401 }));
    await refused;
    assert.equal(key.wanted.value, false);
  } finally {
    fetched.mock.restore();
  }
});

describe('a page that has just been drawn', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  before(async () => {
    stage = await openStage();
    await send(stage.base, makeScenario(supportAgent, { seed: 3, endMs: Date.now(), durationMs: 2500 }).body);
    await until(async () => {
      const answer = await fetch(`${stage.base}/api/stats`);
      return ((await answer.json()) as { run_count: number }).run_count === 5;
    }, 'all runs');
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  test('takes keys before its first frame', async () => {
    const { page } = await stage.open('/');
    await page.locator('.traces-body [role=row]').first().waitFor();
    const link = page.locator('.traces-body a').first();
    const path = new URL(await link.evaluate((element) => (element as HTMLAnchorElement).href)).pathname;
    // Pressed as soon as the runs are in the document: no frame, no timer, no other event comes before.
    const pressed = page.evaluate(
      () =>
        new Promise<string>((resolve) => {
          const observer = new MutationObserver(() => {
            if (document.querySelector('.waterfall') === null) return;
            observer.disconnect();
            document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }));
            resolve(location.search);
          });
          observer.observe(document.body, { childList: true, subtree: true });
        }),
    );
    await link.click();
    assert.match(await pressed, /^\?run=/);
    assert.equal(new URL(page.url()).pathname, path);
    await page.locator('.detail-title').getByText('chat gpt-4o').waitFor();
  });

  test('leaves nothing of the page before: the same key pressed twice opens a trace once', async () => {
    const { page } = await stage.open('/');
    await page.locator('.traces-body [role=row]').first().waitFor();
    await page.keyboard.press('j');
    await page.locator('.trace-row.at-cursor').waitFor();
    const entryCount = await page.evaluate(async () => {
      const before = history.length;
      for (let n = 0; n < 2; n++) {
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
        // Drawn in the microtasks that follow, before any frame.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      }
      return history.length - before;
    });
    assert.equal(entryCount, 1);
    await page.waitForURL(/\/console\/trace\//);
  });

  test('copies the run whose name it shows, though that has not been read yet', async () => {
    const { page } = await stage.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.locator('.traces-body a').first().click();
    await page.locator('#run-panel > *').first().waitFor();
    await page.evaluate(() => navigator.clipboard.writeText(''));
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/api/runs/*', async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole('treegrid').getByText('lookup_order').click();
    await page.locator('.detail-title').getByText('lookup_order').waitFor();
    await page.locator('.detail-bar').getByRole('button', { name: 'JSON', exact: true }).click();
    answer();
    let text = '';
    await until(async () => (text = await page.evaluate(() => navigator.clipboard.readText())) !== '', 'the copy');
    assert.equal((JSON.parse(text) as { id: string }).id, new URL(page.url()).searchParams.get('run'));
  });

  test('forgets what was typed the moment before the filter was cleared', async () => {
    const { page } = await stage.open('/?min_duration_ms=1');
    await page.locator('.traces-body [role=row]').first().waitFor();
    const search = page.getByLabel('Search', { exact: true });
    await search.focus();
    // Without the moment in between after which the text would come into force by itself.
    await page.evaluate(async () => {
      const field = document.activeElement as HTMLInputElement;
      field.value = 'nosuchword';
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      const clear = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Clear');
      clear?.focus();
      // As between a button that is pressed and one that is let go: drawn in the microtasks that follow.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      clear?.click();
    });
    await until(async () => (await search.inputValue()) === '', 'the field to be empty');
    assert.equal(page.url(), `${stage.base}/`);
  });

  test('shows what happened between its reading and the connection of its live stream', async () => {
    const { body } = makeScenario(retrieval, { seed: 12, endMs: Date.now(), durationMs: 1500 });
    const request = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: object[] }[] }[] };
    const scope = request.resourceSpans[0]?.scopeSpans[0];
    assert.ok(scope !== undefined);
    const [root, ...below] = scope.spans;
    scope.spans = [root ?? {}];
    await send(stage.base, JSON.stringify(request), 'handbook');
    const { page } = await stage.open('/?project=handbook');
    const link = page.locator('.traces-body a').first();
    await link.waitFor();
    let connect = (): void => undefined;
    const held = new Promise<void>((resolve) => (connect = resolve));
    await page.route('**/api/events?*', async (route) => {
      await held;
      await route.continue();
    });
    await link.click();
    await page.getByText('1 runs', { exact: true }).waitFor();
    scope.spans = below;
    await send(stage.base, JSON.stringify(request), 'handbook');
    await until(async () => {
      const answer = await fetch(`${stage.base}/api/stats?project=handbook`);
      return ((await answer.json()) as { run_count: number }).run_count === 4;
    }, 'all runs');
    connect();
    await page.getByText('4 runs', { exact: true }).waitFor();
  });
});
