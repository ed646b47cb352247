/** Much of it: a hundred thousand traces in the list, ten thousand spans in one. How long it takes is told, what it takes is asserted. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { createBackendClient } from '../../src/backend/client.ts';
import { makeRun, type RunRecord } from '../backend-runs.ts';
import { NO_BROWSER, openStage, until, type Stage } from './browser.ts';

const TRACE_COUNT = 100_000;
const SPAN_COUNT = 10_000;
const RUNS_PER_UPLOAD = 2500;
/** Rows in the document, those outside of the view included; a screen has about thirty. */
const MAX_ROWS = 90;

describe('many traces, and long ones', { skip: NO_BROWSER }, () => {
  let stage: Stage;
  let longTraceId = '';
  before(async () => {
    stage = await openStage();
    const client = createBackendClient(stage.service.endpoint);
    const upload = async (runs: readonly RunRecord[]): Promise<void> => {
      const { status, text } = await client.uploadRuns(runs);
      assert.equal(status, 202, text);
    };
    const startUs = Date.now() * 1000 - TRACE_COUNT * 10_000;
    for (let made = 0; made < TRACE_COUNT; made += RUNS_PER_UPLOAD) {
      await upload(
        Array.from({ length: RUNS_PER_UPLOAD }, (_, n) =>
          makeRun({
            startUs: startUs + (made + n) * 10_000,
            durationUs: 1000 + (((made + n) * 7919) % 5_000_000),
            fields: {
              name: `agent ${made + n}`,
              session_name: `project-${(made + n) % 5}`,
              inputs: { input: `question ${made + n}` },
              ...((made + n) % 50 === 0 ? { status: 'error', error: 'RateLimitError: slow down' } : {}),
            },
          }),
        ),
      );
    }
    longTraceId = randomUUID();
    const root = makeRun({
      id: longTraceId,
      startUs: startUs - 60_000_000,
      durationUs: 30_000_000,
      fields: { name: 'long' },
    });
    const steps = Array.from({ length: 99 }, (_, n) =>
      makeRun({
        parent: root,
        startUs: startUs - 60_000_000 + n * 300_000,
        durationUs: 290_000,
        fields: { name: `step ${n}` },
      }),
    );
    const calls = steps.flatMap((parent, n) =>
      Array.from({ length: 100 }, (_, m) =>
        makeRun({
          parent,
          startUs: startUs - 60_000_000 + n * 300_000 + m * 2800,
          durationUs: 2700,
          fields: { name: `call ${m}`, run_type: m % 3 === 0 ? 'llm' : 'tool' },
        }),
      ),
    );
    const runs = [root, ...steps, ...calls].slice(0, SPAN_COUNT);
    for (let at = 0; at < runs.length; at += RUNS_PER_UPLOAD) await upload(runs.slice(at, at + RUNS_PER_UPLOAD));
  });
  afterEach(() => stage.leave());
  after(() => stage.close());

  test('a hundred thousand traces: few rows are in the document, however far one scrolls', async (t) => {
    const { page } = await stage.open('/');
    const rows = page.locator('.traces-body [role=row]');
    await rows.first().waitFor();
    await report(t, page, 'list shown after');
    await until(async () => (await page.locator('.figures dd').first().innerText()) === '100,001', 'the count of all');
    const list = page.locator('.traces-scroll');
    const frames = await list.evaluate(async (element) => {
      const gapsMs: number[] = [];
      let most = 0;
      let beforeMs = performance.now();
      for (let n = 0; n < 150; n++) {
        element.scrollTop += 400;
        await new Promise((resolve) => requestAnimationFrame(resolve));
        gapsMs.push(performance.now() - beforeMs);
        beforeMs = performance.now();
        most = Math.max(most, element.querySelectorAll('.traces-body [role=row]').length);
      }
      gapsMs.sort((a, b) => a - b);
      return { most, medianMs: gapsMs[75], p95Ms: gapsMs[142] };
    });
    t.diagnostic(
      `scrolled: a frame took ${frames.medianMs?.toFixed(1)} ms (median), ${frames.p95Ms?.toFixed(1)} ms (p95)`,
    );
    assert.ok(frames.most <= MAX_ROWS, `${frames.most} rows`);
    // Each page joins the one before: every row comes once, in the order of time.
    const last = page.locator('.trace-row.at-cursor');
    let index = -1;
    await until(async () => {
      await page.keyboard.press('End');
      index = Number(await last.getAttribute('aria-rowindex')) - 2;
      return index > 1000;
    }, 'the first thousand');
    assert.match(await last.innerText(), new RegExp(`^agent ${TRACE_COUNT - 1 - index}\\b`));
  });

  test('a filter over them is answered, and a search finds the one', async (t) => {
    const { page } = await stage.open('/?project=project-3&error=RateLimit&min_duration_ms=1000');
    await page.locator('.traces-body [role=row], .empty').first().waitFor();
    await report(t, page, 'filtered list shown after');
    const found = await stage.open('/?text=question%2077777');
    await until(async () => (await found.page.locator('.traces-body [role=row]').count()) === 1, 'the one');
    await report(t, found.page, 'search answered after');
    assert.match(await found.page.locator('.traces-body').innerText(), /question 77777/);
  });

  test('ten thousand spans: few rows are in the document, the last is reached, all of it collapses', async (t) => {
    const { page } = await stage.open(`/console/trace/${longTraceId}`);
    const rows = page.locator('.run-body [role=row]');
    await rows.first().waitFor();
    await report(t, page, 'trace shown after');
    await page.getByText('10,000 runs', { exact: true }).waitFor();
    assert.ok((await rows.count()) <= MAX_ROWS);
    await page.locator('.waterfall-scroll').evaluate((element) => (element.scrollTop = element.scrollHeight));
    await page.locator(`[aria-rowindex="${SPAN_COUNT + 1}"]`).waitFor();
    assert.ok((await rows.count()) <= MAX_ROWS);
    await page.getByRole('button', { name: 'Collapse all' }).click();
    await page.locator('.run-body .badge').first().waitFor();
    assert.equal(await page.getByRole('treegrid', { name: 'Runs' }).getAttribute('aria-rowcount'), '101');
    await page.getByRole('searchbox', { name: 'Find a run' }).fill('step 42');
    await until(async () => (await rows.count()) === 2, 'the step and its root');
  });

  /** Milliseconds from the navigation to now. */
  async function report(t: TestContext, page: Page, what: string): Promise<void> {
    t.diagnostic(`${what} ${Math.round(await page.evaluate(() => performance.now()))} ms`);
  }
});
