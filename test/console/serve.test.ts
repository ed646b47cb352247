/** How the console is served: to whom, with which headers, how much of it, and what happens when it cannot be put together. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { BACKEND_OPERATIONS } from '../../src/backend/operations.ts';
import { makeBundle, type Asset, type Bundle } from '../../src/console/bundle.ts';
import { createConsole } from '../../src/console/console.ts';
import { CONSOLE_OPERATIONS } from '../../src/console/operations.ts';
import type { HttpRequest } from '../../src/core/http.ts';
import { silentLog } from '../../src/core/log.ts';
import { PIPELINE_OPERATIONS } from '../../src/observe/operations.ts';
import type { Service } from '../../src/service.ts';
import { startService } from '../flow/pipelinehost.ts';

const MAX_SENT_BYTES = 300_000;

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'console-'));
});
after(() => rm(folder, { recursive: true }));

/** Runs `body` with a service, which it stops whatever happens. */
async function withService(
  environment: Record<string, string>,
  body: (base: string, service: Service) => Promise<void>,
) {
  const service = await startService({ DATA_DIR: folder, SERVICE_ENDPOINT: 'embedded', ...environment });
  try {
    await body(`http://127.0.0.1:${service.port}`, service);
  } finally {
    await service.stop(2000);
  }
}

test('the console is off unless it is asked for', async () => {
  await withService({}, async (base) => {
    for (const path of ['/', '/console', '/console/traces', '/api/console']) {
      assert.equal((await fetch(`${base}${path}`)).status, 404, path);
    }
    assert.equal((await fetch(`${base}/api/traces`)).status, 200);
  });
});

test('one page answers every path of the console, with nothing in it that a policy would have to allow', async () => {
  await withService({ CONSOLE: 'true' }, async (base) => {
    for (const path of ['/', '/console', '/console/trace/anything?run=x']) {
      const answer = await fetch(`${base}${path}`);
      const page = await answer.text();
      assert.equal(answer.status, 200, path);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
      const policy = answer.headers.get('content-security-policy') ?? '';
      assert.match(policy, /^default-src 'none'; /);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      assert.match(policy, /require-trusted-types-for 'script'/);
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(answer.headers.get('cache-control'), 'no-cache');
      assert.doesNotMatch(page, /<style|style=|<script>|onload|https?:\/\//);
    }
    const post = await fetch(`${base}/`, { method: 'POST' });
    assert.equal(post.status, 405);
  });
});

test('the page is not sent again while it is the same', async () => {
  await withService({ CONSOLE: 'true' }, async (base) => {
    const etag = (await fetch(`${base}/`)).headers.get('etag') ?? '';
    const again = await fetch(`${base}/`, { headers: { 'if-none-match': etag } });
    assert.equal(again.status, 304);
    assert.equal(await again.text(), '');
  });
});

test('with keys the page asks for one, and everything that it reads wants it', async () => {
  await withService({ CONSOLE: 'true', DEPLOYMENT_API_KEYS: 'first,second' }, async (base) => {
    assert.equal((await fetch(`${base}/`)).status, 200);
    for (const path of ['/api/console', '/api/traces', '/api/events', '/api/stats']) {
      assert.equal((await fetch(`${base}${path}`)).status, 401, path);
      assert.equal((await fetch(`${base}${path}`, { headers: { 'x-api-key': 'third' } })).status, 401, path);
    }
    const told = await fetch(`${base}/api/console`, { headers: { 'x-api-key': 'second' } });
    assert.equal(told.status, 200);
    assert.equal((await fetch(`${base}/api/traces`, { headers: { 'x-api-key': 'second' } })).status, 200);
  });
});

test('without keys only this machine is served, and not through a proxy', async () => {
  await withService({ CONSOLE: 'true' }, async (base) => {
    for (const path of ['/', '/console/assets/x.js', '/api/console', '/api/traces']) {
      const answer = await fetch(`${base}${path}`, { headers: { 'x-forwarded-for': '203.0.113.7' } });
      assert.equal(answer.status, 403, path);
    }
  });
});

test('the description of the API has what the console reads, as the backend answers it', async () => {
  await withService({ CONSOLE: 'true' }, async (base) => {
    const document = (await (await fetch(`${base}/openapi.json`)).json()) as { paths: Record<string, object> };
    for (const { pattern, query } of [...BACKEND_OPERATIONS, ...CONSOLE_OPERATIONS, ...PIPELINE_OPERATIONS]) {
      assert.ok(document.paths[pattern.replaceAll(/:(\w+)/g, '{$1}')] !== undefined, pattern);
      const path = pattern.replaceAll(/:\w+/g, '00000000-0000-4000-8000-000000000000');
      for (const parameter of query ?? []) {
        const name = typeof parameter === 'string' ? parameter : parameter.name;
        const aborter = new AbortController();
        const answer = await fetch(`${base}${path}?${name}=${SAMPLES[name] ?? ''}`, { signal: aborter.signal });
        assert.ok([200, 404].includes(answer.status), `${pattern} ${name}: ${answer.status}`);
        if (answer.status === 404) assert.match(await answer.text(), /no (run|trace|such attachment)/);
        aborter.abort();
      }
    }
  });
});

const SAMPLES: Readonly<Record<string, string>> = {
  tenant: 't',
  project: 'p',
  trace: '00000000-0000-4000-8000-000000000000',
  parent: '00000000-0000-4000-8000-000000000000',
  status: 'error',
  run_type: 'llm',
  name: 'n',
  since: '2026-01-01T00:00:00Z',
  until: '1767225600000',
  text: 'word',
  min_duration_ms: '1',
  max_duration_ms: '2',
  error: 'true',
  limit: '1',
  cursor: '1_1',
  format: 'flat',
  buckets: '3',
  seconds: '10',
  series: '*',
};

describe('the bundle', () => {
  let made: Bundle;
  // Not beside the services above: the bundler's process is one for all, and who is done first ends it.
  before(async () => {
    made = await makeBundle();
  });

  test('compressed, all of it is less than 300 kB', () => {
    const { page, assets } = made;
    const all = [page, ...assets.values()];
    for (const coding of ['brotli', 'gzip'] as const) {
      const sentBytes = all.reduce((sum, asset) => sum + asset[coding].byteLength, 0);
      assert.ok(sentBytes < MAX_SENT_BYTES, `${coding}: ${sentBytes} bytes`);
    }
  });

  test('every file says what it is, and each coding holds the same', () => {
    for (const [path, asset] of made.assets) {
      assert.match(path, /^\/console\/assets\/[\w-]+-[A-Z0-9]+\.(js|css|svg)$/);
      assert.notEqual(asset.contentType, '', path);
      assert.deepEqual(new Uint8Array(brotliDecompressSync(asset.brotli)), new Uint8Array(asset.bytes));
      assert.deepEqual(new Uint8Array(gunzipSync(asset.gzip)), new Uint8Array(asset.bytes));
    }
  });

  test('nothing in it turns text into markup or code', () => {
    for (const [path, { bytes }] of made.assets) {
      if (!path.endsWith('.js')) continue;
      assert.doesNotMatch(Buffer.from(bytes).toString(), /dangerouslySetInnerHTML:|\beval\(|new Function\(/, path);
    }
  });
});

test('a page that cannot be put together is a 500 with the reason, and the next request tries again', async () => {
  let attempts = 0;
  const logged: string[] = [];
  const app = createConsole({
    refusalOf: () => null,
    facts: () => ({ version: '1', traces: true, endpoint: 'embedded', secure: false, deployment: null }),
    log: { ...silentLog, error: (_fields, message) => logged.push(message) },
    watchSources: false,
    makeBundle: async () => {
      attempts++;
      throw new Error('main.tsx:1:1: unexpected end');
    },
  });
  for (const path of ['/', '/console/traces', '/console/assets/main-X.js']) {
    const answer = await app.handle(request(path));
    assert.equal(answer.status, 500);
    assert.match('body' in answer ? String(answer.body) : '', /unexpected end/);
  }
  assert.equal(attempts, 3);
  assert.equal(logged.length, 3);
});

test('a page whose sources have changed is made anew once, however many ask for it at once', async () => {
  const asset: Asset = {
    contentType: 'text/html',
    bytes: new Uint8Array(),
    brotli: new Uint8Array(),
    gzip: new Uint8Array(),
    etag: '"e"',
  };
  let madeCount = 0;
  let isChanged = false;
  const app = createConsole({
    refusalOf: () => null,
    facts: () => ({ version: '1', traces: true, endpoint: 'embedded', secure: false, deployment: null }),
    log: silentLog,
    watchSources: true,
    makeBundle: async () => {
      const isFirst = ++madeCount === 1;
      // As it is: some find out before the others.
      let askedCount = 0;
      const isStale = async (): Promise<boolean> => {
        const turnCount = 20 * askedCount++;
        for (let turn = 0; turn < turnCount; turn++) await Promise.resolve();
        return isFirst && isChanged;
      };
      return { page: asset, assets: new Map(), isStale };
    },
  });
  const ask = async (): Promise<void> => assert.equal((await app.handle(request('/'))).status, 200);
  await ask();
  isChanged = true;
  await Promise.all([ask(), ask(), ask()]);
  assert.equal(madeCount, 2);
});

function request(path: string): HttpRequest {
  return {
    method: 'GET',
    path,
    query: '',
    header: () => '',
    headers: new Map(),
    remoteAddress: '127.0.0.1',
    requestId: 'r',
    body: new Uint8Array(),
    signal: new AbortController().signal,
  };
}
