/** Whatever a span says, in any field that the console shows, it is text: no element, no script, no request comes of it. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { NO_BROWSER, openStage, until, type Stage } from './browser.ts';
import { send } from './workload.ts';

const MARK = 'pwned';
const CODE = `globalThis.${MARK}=1`;
const SVG = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="${CODE}"/>`).toString('base64');

/** One after another in the fields, so that each field has had each. */
const PAYLOADS = [
  `<img src=x onerror="${CODE}">`,
  `"><script>${CODE}</script><iframe srcdoc="<script>parent.${CODE}</script>"></iframe>`,
  `<svg onload="${CODE}"><style>*{display:none}</style><base href="https://example.invalid/">`,
  `[open](javascript:${CODE}) ![x](javascript:${CODE}) ![y](data:image/svg+xml;base64,${SVG}) <javascript:${CODE}>`,
  `![p](https://example.invalid/p.png) <link rel=stylesheet href=https://example.invalid/s.css> <a href="javascript:${CODE}">a</a>`,
  `\`\`\`<script>${CODE}</script>\n\`\`\`\n| <img src=x onerror=${CODE}> |\n|---|\n| <b onmouseover=${CODE}>b</b> |`,
  `{{constructor.constructor('${CODE}')()}} \${${CODE}} </textarea></title><object data="data:text/html,<script>${CODE}</script>">`,
] as const;

interface Attributes {
  readonly [name: string]: unknown;
}

/** A trace with the payload in every place that something is shown from. */
function hostileTrace(payload: string, seed: number): string {
  const id = (n: number, length: number): string => (seed * 256 + n).toString(16).padStart(length, 'a');
  const endMs = Date.now();
  const text = { type: 'text', content: payload };
  const call = { type: 'tool_call', id: payload, name: payload, arguments: { [payload]: payload } };
  const image = { type: 'uri', modality: 'image', uri: `javascript:${CODE}` };
  const drawn = { type: 'blob', modality: 'image', mime_type: 'image/svg+xml', content: SVG };
  const span = (n: number, parent: number | null, attributes: Attributes, failed = false): object => ({
    traceId: id(0, 32),
    spanId: id(n, 16),
    ...(parent === null ? {} : { parentSpanId: id(parent, 16) }),
    name: payload,
    kind: 1,
    startTimeUnixNano: `${endMs - 100 + n}000000`,
    endTimeUnixNano: `${endMs}000000`,
    attributes: Object.entries({
      ...attributes,
      [`langsmith.metadata.${payload}`]: payload,
      'langsmith.span.tags': payload,
    }).map(([key, value]) => ({
      key,
      value: { stringValue: typeof value === 'string' ? value : JSON.stringify(value) },
    })),
    ...(failed
      ? {
          status: { code: 2, message: payload },
          events: [
            {
              name: 'exception',
              timeUnixNano: `${endMs}000000`,
              attributes: [
                { key: 'exception.type', value: { stringValue: payload } },
                { key: 'exception.message', value: { stringValue: payload } },
                { key: 'exception.stacktrace', value: { stringValue: `${payload}\n    at ${payload}` } },
              ],
            },
          ],
        }
      : {}),
  });
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: payload } }] },
        scopeSpans: [
          {
            spans: [
              span(1, null, {
                'langsmith.span.kind': 'chain',
                'langsmith.trace.name': payload,
                'input.value': payload,
                'output.value': payload,
              }),
              span(2, 1, {
                'gen_ai.operation.name': 'chat',
                'gen_ai.request.model': payload,
                'gen_ai.system_instructions': [text],
                'gen_ai.input.messages': [
                  { role: 'user', parts: [text, image, drawn] },
                  { role: payload, parts: [text] },
                  {
                    role: 'tool',
                    parts: [{ type: 'tool_call_response', id: payload, response: { [payload]: payload } }],
                  },
                ],
                'gen_ai.output.messages': [
                  {
                    role: 'assistant',
                    parts: [{ type: 'reasoning', content: payload }, text, call, { type: payload, [payload]: payload }],
                    finish_reason: payload,
                  },
                ],
                'gen_ai.tool.definitions': [{ type: 'function', name: payload, description: payload }],
              }),
              span(3, 1, {
                'gen_ai.operation.name': 'execute_tool',
                'gen_ai.tool.name': payload,
                'gen_ai.tool.call.arguments': { [payload]: payload },
                'gen_ai.tool.call.result': payload,
              }),
              span(4, 1, {
                'openinference.span.kind': 'RETRIEVER',
                'input.value': payload,
                'retrieval.documents.0.document.content': payload,
                'retrieval.documents.0.document.id': payload,
                'retrieval.documents.0.document.metadata': JSON.stringify({
                  source: payload,
                  title: payload,
                  [payload]: payload,
                }),
              }),
              span(
                5,
                1,
                { 'langsmith.span.kind': payload, 'input.value': { messages: [{ type: 'human', content: payload }] } },
                true,
              ),
            ],
          },
        ],
      },
    ],
  });
}

/** What stands in the document that only markup could have put there, and whether any of it ran. */
function injected(page: Page): Promise<string[]> {
  return page.evaluate((mark) => {
    const found: string[] = mark in globalThis ? ['a script ran'] : [];
    const foreign = document.querySelectorAll(
      'script:not([src^="/console/assets/"]), iframe, object, embed, base, style, form[action], meta[http-equiv], link:not([href^="/console/assets/"])',
    );
    for (const element of foreign) found.push(element.outerHTML);
    for (const element of document.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        if (name.startsWith('on') || name === 'srcdoc') found.push(element.outerHTML.slice(0, 200));
        if (name === 'src' && element.tagName === 'IMG' && !/^data:image\/(png|jpeg|gif|webp);/.test(value))
          found.push(value);
        if (name === 'href' && element.tagName === 'A' && !/^(https?:\/\/|\/|#)/.test(value)) found.push(value);
      }
    }
    return found;
  }, MARK);
}

describe('hostile spans', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  before(async () => {
    stage = await openStage();
    for (const [index, payload] of PAYLOADS.entries()) {
      await send(stage.base, hostileTrace(payload, index + 1), payload.replaceAll('\n', ' '));
    }
    await until(async () => {
      const answer = await fetch(`${stage.base}/api/stats`);
      return ((await answer.json()) as { run_count: number }).run_count === PAYLOADS.length * 5;
    }, 'all runs to be stored');
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  test('in the list they are text', async () => {
    const { page } = await stage.open('/');
    await until(async () => (await page.locator('.traces-body [role=row]').count()) === PAYLOADS.length, 'all rows');
    assert.deepEqual(await injected(page), []);
    assert.match(await page.locator('.traces-body').innerText(), /<img src=x onerror=/);
    await page
      .getByLabel('Project')
      .getByRole('option', { name: /<svg onload=/ })
      .waitFor({ state: 'attached' });
    await page.locator('.traces-body [role=row]').first().hover();
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    assert.deepEqual(await injected(page), []);
  });

  for (const [index, payload] of PAYLOADS.entries()) {
    test(`in a trace and its runs they are text: ${payload.slice(0, 40).replaceAll('\n', ' ')}`, async () => {
      const traces = (await (await fetch(`${stage.base}/api/traces`)).json()) as {
        items: { trace_id: string; name: string }[];
      };
      const trace = traces.items.find(({ trace_id }) => trace_id.endsWith(((index + 1) * 256).toString(16)));
      assert.ok(trace !== undefined);
      const { page } = await stage.open(`/console/trace/${trace.trace_id}`);
      const runs = page.locator('.run-body [role=row]');
      await until(async () => (await runs.count()) === 5, 'all runs');
      for (let n = 0; n < 5; n++) {
        await runs.nth(n).click();
        for (const tab of ['Run', 'Metadata', 'JSON']) {
          await page.getByRole('tab', { name: tab, exact: true }).click();
          await page.locator('#run-panel > *').first().waitFor();
          // Whatever is folded is looked at as well.
          await page.evaluate(() => {
            for (const folded of document.querySelectorAll<HTMLElement>('#run-panel [aria-expanded=false]'))
              folded.click();
            for (const folded of document.querySelectorAll('details')) folded.open = true;
          });
          assert.deepEqual(await injected(page), [], `run ${n}, ${tab}`);
        }
      }
      await page.keyboard.press('?');
      assert.deepEqual(await injected(page), []);
    });
  }

  test('in a comparison they are text', async () => {
    const answer = await fetch(`${stage.base}/api/traces`);
    const { items } = (await answer.json()) as { items: { trace_id: string }[] };
    const { page } = await stage.open(`/console/compare/${items[0]?.trace_id}/${items[1]?.trace_id}`);
    const pairs = page.locator('.run-body [role=row]');
    await pairs.nth(3).waitFor();
    for (let n = 0; n < (await pairs.count()); n++) {
      await pairs.nth(n).click();
      await page.locator('.part').first().waitFor();
      assert.deepEqual(await injected(page), []);
    }
  });

  test('in the address they are text', async () => {
    const payload = encodeURIComponent(PAYLOADS[1]);
    for (const path of [
      `/console/${payload}`,
      `/console/trace/${payload}`,
      `/?text=${payload}&project=${payload}&last=${payload}`,
    ]) {
      const { page } = await stage.open(path, { allowed: /40[04]/ });
      await page.locator('main > *').first().waitFor();
      assert.deepEqual(await injected(page), [], path);
    }
  });
});
