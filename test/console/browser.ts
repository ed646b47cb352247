/**
 * A headless Chromium for tests of the console, from the system's packages: nothing is downloaded. Where there is none the
 * tests are skipped, which the output says. Every page is watched: an exception, a violation of the policy, an error on the
 * browser's console or a dialog fails the test that opened it.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import type { Service } from '../../src/service.ts';
import { startService } from '../flow/pipelinehost.ts';

const PATHS = [
  process.env['CHROMIUM_PATH'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];
const executablePath = PATHS.find((path) => path !== '' && existsSync(path)) ?? null;
/** For `skip` of a test. */
export const NO_BROWSER =
  executablePath === null ? 'no Chromium here: apt-get install chromium, or set CHROMIUM_PATH' : false;

/** A slow, loaded machine is waited for. */
const PATIENCE_MS = 60_000;

/** To look for races, `SLOW_BROWSER=6 npm test`: pages compute so many times slower, and what they ask for is late. */
const SLOWDOWN = Number(process.env['SLOW_BROWSER'] ?? 1);
const MAX_LATENESS_MS = 300;

export interface Watched {
  readonly page: Page;
  /** What went wrong in the page so far, in words. */
  readonly troubles: string[];
}

export interface Stage {
  readonly base: string;
  readonly service: Service;
  /** A page of its own context. `allowed`: errors of the console that the test provokes. */
  open(path: string, options?: BrowserContextOptions & { readonly allowed?: RegExp }): Promise<Watched>;
  /** Closes what is open, as at the end of each test: a page that stays goes on following what happens, and costs the next its time. */
  leave(): Promise<void>;
  close(): Promise<void>;
}

/** A collector with an embedded backend and the console, and a browser; `close` fails if a page was in trouble. */
export async function openStage(environment: Record<string, string> = {}): Promise<Stage> {
  if (executablePath === null) throw new Error(String(NO_BROWSER));
  const folder = await mkdtemp(join(tmpdir(), 'console-'));
  const service = await startService({
    SERVICE_ENDPOINT: 'embedded',
    CONSOLE: 'true',
    DATA_DIR: folder,
    DEPLOYMENT_TRACING: 'false',
    ...environment,
  });
  let browser: Browser | null = null;
  const watched: Watched[] = [];
  const base = `http://127.0.0.1:${service.port}`;
  return {
    base,
    service,
    open: async (path, { allowed, ...options } = {}) => {
      browser ??= await chromium.launch({
        executablePath,
        args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
        timeout: PATIENCE_MS,
      });
      const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ...options });
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      if (SLOWDOWN > 1) await slow(page);
      const troubles: string[] = [];
      const add = (text: string): void => {
        if (allowed?.test(text) !== true) troubles.push(text);
      };
      page.on('pageerror', (error) => add(`exception: ${error.stack ?? error.message}`));
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') add(`console: ${message.text()}`);
      });
      page.on('dialog', (dialog) => {
        add(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on('request', (request) => {
        if (!request.url().startsWith(base) && !request.url().startsWith('data:')) add(`request: ${request.url()}`);
      });
      await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
          console.error(`policy: ${violatedDirective} ${blockedURI}`),
        );
      });
      const entry: Watched = { page, troubles };
      watched.push(entry);
      await page.goto(`${base}${path}`);
      return entry;
    },
    leave: async () => {
      for (const context of browser?.contexts() ?? []) {
        await context.unrouteAll({ behavior: 'ignoreErrors' });
        await context.close();
      }
    },
    close: async () => {
      await browser?.close();
      await service.stop(2000);
      await rm(folder, { recursive: true });
      assert.deepEqual(
        watched.flatMap(({ troubles }) => troubles),
        [],
      );
    },
  };
}

/** Each request waits for a while of its own, so that answers overtake each other. */
async function slow(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN });
  await page.context().route('**', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_LATENESS_MS));
    await route.continue();
  });
}

const axeSource = (createRequire(import.meta.url)('axe-core') as { source: string }).source;

/** What the accessibility checker finds, in words: WCAG 2.2 to level AA, and the practices that it knows. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(options: object): Promise<{
          violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
        }>;
      };
    };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes
        .slice(0, 3)
        .map(({ html, failureSummary }) => `${id}: ${help}\n${html.slice(0, 300)}\n${failureSummary ?? ''}`),
    );
  });
}

/** Waits until it holds; says what it waited for when it does not. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) assert.fail(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
