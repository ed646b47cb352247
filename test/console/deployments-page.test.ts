/** The deployments page in a browser, before a real deployment API with the example graphs. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page, Request, Route } from 'playwright-core';
import { accessibilityProblems, NO_BROWSER, openStage, until, type Stage } from './browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'&lt;';

describe('the deployments page', { skip: NO_BROWSER, timeout: 900_000 }, () => {
  let stage: Stage;
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deployments-page-'));
    const graphs = Object.fromEntries([
      ...['echo', 'agent', 'approval', 'nested'].map((name) => [name, resolve(`src/deploy/examples/${name}.ts:graph`)]),
      ['steps', resolve('test/fixtures/graphs/steps.ts:graph')],
    ]);
    await writeFile(join(folder, 'langgraph.json'), JSON.stringify({ graphs }));
    stage = await openStage({
      DEPLOYMENT_CONFIG: join(folder, 'langgraph.json'),
      WEBHOOK_ALLOW_PRIVATE: 'true',
    });
  });
  afterEach(() => stage.leave());
  after(async () => {
    await stage.close();
    await rm(folder, { recursive: true });
  });

  const open = async (path: string, options: Parameters<Stage['open']>[1] = {}): Promise<Page> =>
    (await stage.open(`/console/deployments/${path}`, { reducedMotion: 'reduce', ...options })).page;

  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(`${stage.base}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? null : JSON.parse(text)) as T;
  };
  const newThread = async (metadata: object = {}): Promise<string> =>
    (await call<{ thread_id: string }>('POST', '/threads', { metadata })).thread_id;
  const wait = (threadId: string, body: object) => call<unknown>('POST', `/threads/${threadId}/runs/wait`, body);

  const choose = (page: Page, assistant: string) => page.getByLabel('Assistant').selectOption({ label: assistant });
  const messages = (page: Page) => page.getByRole('log').locator('.message');
  const phase = (page: Page, words: string) =>
    page.getByLabel('Run', { exact: true }).getByRole('status').getByText(words, { exact: true }).waitFor();

  /** Requests for `asked` wait until the returned function is called. */
  const hold = async (page: Page, asked: string | RegExp): Promise<() => void> => {
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route(asked, async (route) => {
      await held;
      await route.continue();
    });
    return () => answer();
  };

  test('a run of the echo graph is streamed to its end, on a thread that it makes', async () => {
    const page = await open('playground');
    await choose(page, 'echo');
    await page.getByLabel('Message', { exact: true }).fill('Anybody there?');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await phase(page, 'ended');
    assert.match(
      (await messages(page).allInnerTexts()).join(' '),
      /^User\s+Anybody there\? Assistant\s+You said: Anybody there\?$/,
    );
    await page.getByRole('complementary', { name: 'Steps' }).getByText('echo', { exact: true }).waitFor();
    const threadId = new URL(page.url()).searchParams.get('thread') ?? '';
    assert.equal((await call<{ status: string }>('GET', `/threads/${threadId}`)).status, 'idle');
    // The thread remembers: what follows stands below.
    await page.getByLabel('Message', { exact: true }).fill('And now?');
    await page.keyboard.press('Enter');
    await messages(page).nth(3).getByText('You said: And now?').waitFor();
    assert.equal(await messages(page).count(), 4);
  });

  test('the agent calls its tool in sight: tokens, call, result, report', async () => {
    const page = await open('playground');
    await choose(page, 'agent');
    await page.getByLabel('Message', { exact: true }).fill('How is the weather in Paris?');
    await page.keyboard.press('Enter');
    await phase(page, 'ended');
    await messages(page).nth(1).getByText('Let me look that up.').waitFor();
    await messages(page).nth(1).locator('.tool-call').getByText('weather', { exact: true }).waitFor();
    await messages(page).nth(1).locator('.tool-call').getByText('Paris', { exact: true }).waitFor();
    await messages(page).nth(2).getByText('windy, 11 degrees').waitFor();
    await messages(page).nth(3).getByText('The weather is windy, 11 degrees.').waitFor();
    assert.equal(await messages(page).count(), 4);
    assert.deepEqual(await page.getByRole('complementary', { name: 'Steps' }).locator('li header b').allInnerTexts(), [
      'model',
      'tools',
      'model',
    ]);
  });

  test('a stateless run leaves no thread', async () => {
    const before = await call<number>('POST', '/threads/count', {});
    const page = await open('playground?thread=none');
    await choose(page, 'echo');
    await page.getByLabel('Thread').selectOption('none');
    await page.getByLabel('Message', { exact: true }).fill('Hello');
    await page.keyboard.press('Enter');
    await phase(page, 'ended');
    await messages(page).nth(1).getByText('You said: Hello').waitFor();
    await until(async () => (await call<number>('POST', '/threads/count', {})) === before, 'the hidden thread to go');
  });

  test('an interrupt asks, the answer resumes; input is checked before it is sent', async () => {
    const page = await open('playground');
    await choose(page, 'approval');
    const input = page.getByLabel('Input as JSON');
    await input.fill('{"topic": }');
    await page
      .locator('#input-problem')
      .getByText(/Line 1, column 11/)
      .waitFor();
    assert.equal(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled(), true);
    await input.fill('{"topic": "spans"}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await phase(page, 'waits for an answer');
    await page.getByRole('form', { name: 'Answer' }).getByText('May this be published?').waitFor();
    await page.getByLabel('Your answer').fill('yes');
    await page.getByRole('button', { name: 'Resume' }).click();
    await phase(page, 'ended');
    await page.getByRole('log').getByText('Published: A few words about spans.').waitFor();
  });

  test('an interrupted thread is resumed from where it was left', async () => {
    const threadId = await newThread();
    await wait(threadId, { assistant_id: 'approval', input: { topic: 'rings' } });
    const page = await open(`threads/${threadId}`);
    await page.getByLabel('Interrupt in review').getByText('May this be published?').waitFor();
    await page.getByRole('link', { name: 'Go on in the playground' }).click();
    await page.getByLabel('Your answer').fill('no');
    await page.keyboard.press('Enter');
    await phase(page, 'ended');
    await page.getByRole('log').getByText('Not published.').waitFor();
  });

  test('a run that is begun while its thread is still being read stays in sight', async () => {
    const threadId = await newThread();
    await wait(threadId, { assistant_id: 'echo', input: { messages: [{ role: 'user', content: 'before' }] } });
    const [echo] = await call<{ assistant_id: string }[]>('POST', '/assistants/search', { graph_id: 'echo' });
    const page = await open('assistants');
    const answer = await hold(page, `**/threads/${threadId}/state`);
    await page.goto(`${stage.base}/console/deployments/playground?assistant=${echo?.assistant_id}&thread=${threadId}`);
    await page.getByLabel('Message', { exact: true }).fill('now');
    await page.keyboard.press('Enter');
    await phase(page, 'ended');
    const read = page.waitForResponse(`**/threads/${threadId}/state`);
    answer();
    await (await read).finished();
    await page.evaluate(
      () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
    );
    await phase(page, 'ended');
    await messages(page).last().getByText('You said: now').waitFor();
  });

  test('the form of one graph is not shown for another', async () => {
    const page = await open('playground');
    await choose(page, 'echo');
    await page.getByLabel('Message', { exact: true }).waitFor();
    const answer = await hold(page, '**/schemas');
    await choose(page, 'approval');
    await page.getByText('Reading what the graph takes…').waitFor();
    assert.equal(await page.locator('#composer').count(), 0);
    answer();
    await page.getByLabel('Input as JSON').waitFor();
  });

  test('a run that is cancelled before it has said which it is is stopped all the same', async () => {
    const threadId = await newThread();
    const [steps] = await call<{ assistant_id: string }[]>('POST', '/assistants/search', { graph_id: 'steps' });
    const page = await open(`playground?assistant=${steps?.assistant_id}&thread=${threadId}`);
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    const left = new AbortController();
    // The run is there, but the page does not know yet.
    const begun = new Promise<void>((resolve, reject) => {
      const begin = async (route: Route): Promise<void> => {
        const { headers } = await fetch(route.request().url(), {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: route.request().postData() ?? '',
          signal: left.signal,
        });
        resolve();
        await held;
        await route.fulfill({
          headers: { 'content-type': 'text/event-stream', 'content-location': headers.get('content-location') ?? '' },
          body: '',
        });
      };
      void page.route('**/runs/stream', (route) => begin(route).catch(reject));
    });
    await page.getByLabel('Input as JSON').fill('{"stepMs": 600000}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await begun;
    await page.getByRole('button', { name: 'Cancel' }).click();
    answer();
    await phase(page, 'cancelled');
    await until(async () => {
      const [run] = await call<{ status: string }[]>('GET', `/threads/${threadId}/runs`);
      return run?.status === 'interrupted';
    }, 'the run to have stopped');
    left.abort();
  });

  test('what is answered when its page has been left changes nothing on the next', async () => {
    const threadId = await newThread();
    await wait(threadId, { assistant_id: 'approval', input: { topic: 'left' } });
    const page = await open('playground');
    const cases: [path: string, asked: RegExp, begin: () => Promise<void>][] = [
      [
        'playground',
        /\/threads$/,
        async () => {
          await choose(page, 'echo');
          await page.getByLabel('Message', { exact: true }).fill('Hello');
          await page.keyboard.press('Enter');
        },
      ],
      [
        `threads/${threadId}?tab=history`,
        /\/threads\/[^/]+\/state$/,
        async () => {
          await page.getByRole('button', { name: 'Change and fork' }).click();
          await page.getByRole('button', { name: 'Fork', exact: true }).click();
        },
      ],
    ];
    for (const [path, asked, begin] of cases) {
      const isAsked = (request: Request): boolean => request.method() === 'POST' && asked.test(request.url());
      await page.goto(`${stage.base}/console/deployments/${path}`);
      const answer = await hold(page, asked);
      const sent = page.waitForRequest(isAsked);
      const read = page.waitForResponse((response) => isAsked(response.request()));
      await begin();
      await sent;
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Traces' }).click();
      answer();
      await (await read).finished();
      await page.evaluate(
        () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
      );
      assert.equal(page.url(), `${stage.base}/console/traces`, path);
      await page.unrouteAll();
    }
  });

  test('a run can be stopped before every node, and gone on with', async () => {
    const page = await open('playground');
    await choose(page, 'nested');
    await page.getByLabel('stop before every node').check();
    await page.getByLabel('Input as JSON').fill('{"topic": "abc"}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('button', { name: 'Go on' }).waitFor();
    await page.getByLabel('stop before every node').uncheck();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page
      .getByRole('log')
      .getByText(/About abc:/)
      .waitFor();
    await phase(page, 'ended');
  });

  test('a run that is under way is cancelled, by button and by key', async () => {
    for (const cancel of [
      (page: Page) => page.getByRole('button', { name: 'Cancel' }).click(),
      async (page: Page) => {
        // The first takes the hand off the field.
        await page.locator('#composer').blur();
        await page.keyboard.press('Escape');
      },
    ]) {
      const page = await open('playground');
      await choose(page, 'steps');
      await page.getByLabel('Input as JSON').fill('{"stepMs": 600000}');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await phase(page, 'running');
      // Its id is known by now: cancelling goes by it.
      await page.locator('.talk-head code').waitFor();
      await cancel(page);
      await phase(page, 'cancelled');
      const threadId = new URL(page.url()).searchParams.get('thread') ?? '';
      await until(async () => {
        const [run] = await call<{ status: string }[]>('GET', `/threads/${threadId}/runs`);
        return run?.status === 'interrupted';
      }, 'the run to have stopped');
    }
  });

  test('time travel: an earlier checkpoint is opened, changed, forked, and run on from', async () => {
    const threadId = await newThread();
    await wait(threadId, { assistant_id: 'approval', input: { topic: 'first' } });
    const page = await open(`threads/${threadId}?tab=history`);
    const checkpoints = page.locator('.checkpoint');
    await checkpoints.first().waitFor();
    const before = await checkpoints.count();
    await checkpoints.filter({ hasText: '→ write' }).click();
    await page.locator('.next-line').getByText('write', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Change and fork' }).click();
    const update = page.getByLabel('Update, as JSON');
    await update.fill('{');
    await page.getByRole('button', { name: 'Fork', exact: true }).click();
    await page
      .locator('#fork-problem')
      .getByText(/Line 1/)
      .waitFor();
    await update.fill('{"topic": "second", "draft": "Written by hand."}');
    await page.getByLabel('as if written by').selectOption('write');
    await page.getByRole('button', { name: 'Fork', exact: true }).click();
    await until(async () => (await checkpoints.count()) === before + 1, 'the new checkpoint');
    await page.getByLabel('Values').getByText('Written by hand.').waitFor();
    await page.locator('.next-line').getByText('review', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Run on from here' }).click();
    await page.getByText('From checkpoint').waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    await phase(page, 'waits for an answer');
    await page.getByLabel('Your answer').fill('yes');
    await page.keyboard.press('Enter');
    await page.getByRole('log').getByText('Published: Written by hand.').waitFor();
  });

  test('the runs of a thread are there, with every attempt of their webhooks', async () => {
    const receiver = createServer(
      (request, response) => void request.resume().on('end', () => response.writeHead(418).end()),
    );
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const threadId = await newThread();
    await wait(threadId, { assistant_id: 'echo', input: { messages: [{ role: 'user', content: 'hi' }] }, webhook });
    const [run] = await call<{ run_id: string }[]>('GET', `/threads/${threadId}/runs`);
    await until(async () => {
      const found = await call<{ attempt_count: number }[]>('GET', `/runs/${run?.run_id}/webhooks`);
      return (found[0]?.attempt_count ?? 0) > 0;
    }, 'the first attempt');
    const page = await open(`threads/${threadId}?tab=runs`);
    await page.locator('td').getByText('success', { exact: true }).waitFor();
    await page.locator('td button').click();
    await page.getByLabel('Webhook', { exact: true }).getByText(webhook).waitFor();
    await page.getByLabel('Webhook', { exact: true }).getByText('418').first().waitFor();
    receiver.close();
    receiver.closeAllConnections();
  });

  test('a cron is paused, resumed, and deleted after a question', async () => {
    const cron = await call<{ cron_id: string }>('POST', '/runs/crons', {
      assistant_id: 'echo',
      schedule: '0 0 1 1 *',
      input: { messages: [] },
    });
    const page = await open('crons');
    const row = page.locator(`[data-cron="${cron.cron_id}"]`);
    await row.getByText(/in \d+ days|in \d/).waitFor();
    await row.getByRole('button', { name: 'Pause' }).click();
    // Exactly: the buttons “Pause” and “Delete” side by side contain the word too.
    await row.getByText('paused', { exact: true }).waitFor();
    assert.equal((await call<{ enabled: boolean }>('GET', `/runs/crons/${cron.cron_id}`)).enabled, false);
    await row.getByRole('button', { name: 'Resume' }).click();
    await row.getByText('on', { exact: true }).waitFor();
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await row.count(), 1);
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await row.waitFor({ state: 'detached' });
    assert.equal((await fetch(`${stage.base}/runs/crons/${cron.cron_id}`)).status, 404);
  });

  test('an assistant’s graph is drawn, its subgraph on demand', async () => {
    const page = await open('assistants');
    await page.getByRole('link', { name: 'nested' }).click();
    await page.getByRole('img', { name: /Graph of 4 nodes: .*research/ }).waitFor();
    await page.keyboard.press('x');
    await page.getByRole('img', { name: /Graph of 5 nodes: .*research:search leads to research:check/ }).waitFor();
    await page.locator('.graph').getByText('search', { exact: true }).waitFor();
  });

  test('the keyboard alone: from the navigation to a run’s end and its thread’s history', async () => {
    const page = await open('assistants');
    await page.getByRole('heading', { name: 'agent' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.getByRole('heading', { name: 'echo' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByLabel('Message', { exact: true }).waitFor();
    await page.keyboard.press('i');
    await page.keyboard.type('by hand');
    await page.keyboard.press('Enter');
    await messages(page).nth(1).getByText('You said: by hand').waitFor();
    await phase(page, 'ended');
    await page.keyboard.press('Escape');
    await page.keyboard.press('3');
    await page.getByRole('article', { name: 'Thread' }).waitFor();
    await page.keyboard.press('h');
    await page.locator('.checkpoint').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.waitForURL(/checkpoint=/);
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Earlier checkpoint').waitFor();
  });

  test('what is hostile stays text: names, metadata, values, errors, events', async () => {
    const assistant = await call<{ assistant_id: string }>('POST', '/assistants', {
      graph_id: 'echo',
      name: HOSTILE,
      description: HOSTILE,
      metadata: { [HOSTILE]: HOSTILE },
    });
    const page = await open(`assistants/${assistant.assistant_id}`);
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    await page.goto(`${stage.base}/console/deployments/playground?assistant=${assistant.assistant_id}`);
    await page.getByLabel('Message', { exact: true }).fill(HOSTILE);
    await page.keyboard.press('Enter');
    await phase(page, 'ended');
    assert.match(await messages(page).nth(1).innerText(), /You said: <img src=x onerror=alert\(1\)>/);

    const threadId = await newThread({ [HOSTILE]: HOSTILE });
    await wait(threadId, { assistant_id: 'approval', input: { topic: HOSTILE, draft: HOSTILE } });
    for (const tab of ['state', 'history', 'runs']) {
      await page.goto(`${stage.base}/console/deployments/threads/${threadId}?tab=${tab}`);
      await page.getByRole('tab', { name: new RegExp(tab, 'i'), selected: true }).waitFor();
      if (tab === 'runs') await page.locator('td button').click();
      await page.getByRole('tabpanel').getByText(HOSTILE).first().waitFor();
    }
    const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    await page.route('**/runs/stream', (route) =>
      route.fulfill({
        contentType: 'text/event-stream',
        body: [
          event('messages', [
            {
              type: 'ai',
              id: HOSTILE,
              name: HOSTILE,
              content: HOSTILE,
              tool_calls: [{ name: HOSTILE, args: HOSTILE }],
            },
            {},
          ]),
          event('updates', { [HOSTILE]: { [HOSTILE]: HOSTILE } }),
          event(HOSTILE, { [HOSTILE]: HOSTILE }),
          event('updates', { __interrupt__: [{ id: HOSTILE, value: { [HOSTILE]: HOSTILE } }] }),
          event('error', { error: HOSTILE, message: HOSTILE }),
        ].join(''),
      }),
    );
    await page.goto(`${stage.base}/console/deployments/playground?assistant=${assistant.assistant_id}&thread=none`);
    await page.getByLabel('Message', { exact: true }).fill('x');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText(HOSTILE).waitFor();
    await page.getByRole('form', { name: 'Answer' }).getByText(HOSTILE).first().waitFor();
    await page.getByRole('complementary', { name: 'Steps' }).getByText(HOSTILE).first().waitFor();
    // The stream's text is its own: what is no markup stays as it is, what looks like it is not made to be.
    await messages(page).last().locator('.tool-call').getByText(HOSTILE).first().waitFor();
    assert.equal(await page.locator('main img, main script').count(), 0);
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing, ${colorScheme}`, async () => {
      const threadId = await newThread();
      await wait(threadId, { assistant_id: 'approval', input: { topic: 'axe' } });
      await call('POST', '/runs/crons', { assistant_id: 'echo', schedule: '0 0 1 1 *', input: {} });
      const page = await open('playground', { colorScheme });
      await page.getByLabel('Message', { exact: true }).fill('How is the weather in Rome?');
      await page.keyboard.press('Enter');
      await phase(page, 'ended');
      assert.deepEqual(await accessibilityProblems(page), [], 'playground');
      const parts: [path: string, ready: () => Promise<void>][] = [
        ['assistants', () => page.locator('.graph').waitFor()],
        [`threads/${threadId}`, () => page.getByLabel('Interrupt in review').waitFor()],
        [`threads/${threadId}?tab=history`, () => page.getByRole('button', { name: 'Change and fork' }).click()],
        [`threads/${threadId}?tab=runs`, () => page.locator('td button').click()],
        ['crons', () => page.getByRole('button', { name: 'Pause' }).first().waitFor()],
      ];
      for (const [path, ready] of parts) {
        await page.goto(`${stage.base}/console/deployments/${path}`);
        await ready();
        assert.deepEqual(await accessibilityProblems(page), [], path);
      }
    });
  }
});
