/** The pipeline page in a browser, before a real service: spans flow, refusals and outages are told in words. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import type { Service } from '../../src/service.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { tracesUrl } from '../flow/pipelinehost.ts';
import { accessibilityProblems, NO_BROWSER, openStage, type Stage } from './browser.ts';

const stages: Stage[] = [];
afterEach(async () => {
  for (const each of stages.splice(0)) await each.close();
});

async function open(
  environment: Record<string, string> = {},
  options: BrowserContextOptions = {},
): Promise<{ page: Page; service: Service }> {
  const opened = await openStage({ DEPLOYMENT_API: 'off', ...environment });
  stages.push(opened);
  const { page } = await opened.open('/console/pipeline', { reducedMotion: 'reduce', ...options });
  await page.getByText('live', { exact: true }).waitFor();
  return { page, service: opened.service };
}

describe('the pipeline page', { skip: NO_BROWSER, timeout: 600_000 }, () => {
  const stage = (page: Page, id: string) => page.locator(`[data-stage=${id}]`);
  const fact = (page: Page, id: string, label: string) =>
    stage(page, id).locator('.stage-facts > div').filter({ hasText: label }).locator('dd');
  const figure = (page: Page, name: string) =>
    page
      .getByRole('region', { name: 'Figures' })
      .locator('tr')
      .filter({ has: page.getByText(name, { exact: true }) });

  test('spans that are sent are seen at every stage, without a reload', async () => {
    const { page, service } = await open();
    await page.getByText('Nothing comes in; everything is ready.').waitFor();
    await stage(page, 'backend').getByText('Idle').waitFor();
    const { spans } = makeTrace(7, 12);
    assert.equal((await postJson(tracesUrl(service), jsonRequest(spans))).status, 200);
    // All at once: after a minute the stages are idle again.
    await Promise.all([
      page.getByText('Spans come in and get through.').waitFor(),
      ...['accept', 'decode', 'rings', 'assemble', 'batch', 'upload', 'backend'].map((id) =>
        stage(page, id).getByText('Well', { exact: true }).waitFor(),
      ),
      fact(page, 'accept', 'ack p99')
        .getByText(/\d (µs|ms|s)$/)
        .waitFor(),
      fact(page, 'batch', 'compression')
        .getByText(/^\d+\.\d ×$/)
        .waitFor(),
    ]);
    await fact(page, 'backend', 'delivered').getByText(String(spans.length), { exact: true }).waitFor();
    await figure(page, 'runs_delivered').getByText(String(spans.length), { exact: true }).waitFor();
    assert.ok((await page.locator('.chart canvas').count()) >= 6);
  });

  test('a refusal is a reason at its stage, in the headline and among the losses', async () => {
    const { page, service } = await open();
    assert.equal((await postJson(tracesUrl(service), '{')).status, 400);
    const words = /1 request refused in the last minute: body or header that cannot be read/;
    await Promise.all([
      page.getByRole('status').getByText(words).waitFor(),
      stage(page, 'accept').getByText(words).waitFor(),
      stage(page, 'accept').getByText('Degraded').waitFor(),
      page.getByRole('region', { name: 'Requests refused' }).getByText('body or header that cannot be read').waitFor(),
    ]);
  });

  test('a drop is told with its reason', async () => {
    const backend = await refusingBackend(400);
    const { page, service } = await open({ SERVICE_ENDPOINT: backend.url, FILTER_NON_GENAI: 'false' });
    const { spans } = makeTrace(3, 1);
    assert.equal((await postJson(tracesUrl(service), jsonRequest(spans))).status, 200);
    await Promise.all([
      page.getByRole('region', { name: 'Spans dropped' }).getByText('refused by the backend for good').waitFor(),
      page
        .getByRole('status')
        .getByText(/3 spans dropped in the last minute: refused by the backend for good/)
        .waitFor(),
    ]);
    await backend.close();
  });

  test('a backend that fails is down, with what it answers', async () => {
    const backend = await refusingBackend(503);
    const { page, service } = await open({
      SERVICE_ENDPOINT: backend.url,
      MAX_RETRIES: '100',
      RETRY_BACKOFF_MS: '100',
    });
    const { spans } = makeTrace(3, 1);
    assert.equal((await postJson(tracesUrl(service), jsonRequest(spans))).status, 200);
    await stage(page, 'backend').getByText('Down', { exact: true }).waitFor();
    await stage(page, 'backend')
      .getByText(/No upload succeeds .*nothing was delivered yet/)
      .waitFor();
    await page.getByRole('status').getByText('Down', { exact: true }).waitFor();
    await stage(page, 'upload')
      .getByText(/uploads failed in the last minute; they are tried again/)
      .waitFor();
    await backend.close();
  });

  test('the keyboard does it all: stages, figures, how far back', async () => {
    const { page } = await open();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    assert.equal(await page.getByLabel('Stage', { exact: true }).inputValue(), 'decode');
    assert.equal(await page.locator(':focus').innerText(), 'Decode');
    await page.keyboard.press('k');
    assert.equal(await page.getByLabel('Stage', { exact: true }).inputValue(), 'accept');
    await page.keyboard.press('1');
    await page.waitForURL(/minutes=1/);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('event loop');
    await figure(page, 'eventLoopDelayP99Ms').waitFor();
    assert.equal(await figure(page, 'spans_accepted').count(), 0);
  });

  test('the configuration is there, its secrets are not', async () => {
    const { page } = await open({ SERVICE_API_KEY: 'a-very-secret-key', BATCH_SIZE: '77' });
    const row = page.getByRole('region', { name: 'Configuration in effect' }).locator('tr');
    await row.filter({ hasText: 'BATCH_SIZE' }).getByText('77', { exact: true }).waitFor();
    await row.filter({ hasText: 'SERVICE_API_KEY' }).getByText('******** (17 characters)').waitFor();
    assert.doesNotMatch(await page.content(), /a-very-secret-key/);
    await page.getByLabel('only what was set').check();
    assert.equal(await row.filter({ hasText: 'MAX_RETRIES' }).count(), 0);
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing, ${colorScheme}`, async () => {
      const { page, service } = await open({}, { colorScheme });
      assert.equal((await postJson(tracesUrl(service), '{')).status, 400);
      await stage(page, 'accept').getByText('Degraded').waitFor();
      assert.deepEqual(await accessibilityProblems(page), []);
    });
  }
});

/** Answers every upload with `status`. */
async function refusingBackend(status: number): Promise<{ url: string; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    request.resume().on('end', () => {
      const isInfo = request.method === 'GET';
      response.writeHead(isInfo ? 404 : status, { 'content-type': 'application/json' }).end('{"detail":"no"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
