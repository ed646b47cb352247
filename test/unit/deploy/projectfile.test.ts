import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readDeploymentConfig } from '../../../src/deploy/config.ts';
import type { DeploymentConfig } from '../../../src/deploy/config.ts';

describe('langgraph.json', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-config-'));
  });
  after(() => rm(folder, { recursive: true }));

  const read = async (content: unknown, environment: Record<string, string> = {}) => {
    const path = join(folder, 'langgraph.json');
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
    return readDeploymentConfig(path, environment);
  };
  const accepted = async (content: object, environment?: Record<string, string>): Promise<DeploymentConfig> => {
    const reading = await read({ graphs: {}, ...content }, environment);
    assert.ok(reading.kind === 'read', JSON.stringify(reading));
    return reading.config;
  };
  const issues = async (content: unknown, environment?: Record<string, string>): Promise<string> => {
    const reading = await read(content, environment);
    assert.equal(reading.kind, 'invalid');
    return (reading as { issues: string[] }).issues.join('\n');
  };

  it('names graphs by module and export, relative to itself', async () => {
    const config = await accepted({
      graphs: { a: './src/agent.ts:graph', b: { path: '/abs/b.js', description: 'x' }, c: './c.mjs:default' },
    });
    assert.deepEqual(config.graphs, [
      { graphId: 'a', file: join(folder, 'src/agent.ts'), exportName: 'graph' },
      { graphId: 'b', file: '/abs/b.js', exportName: '', description: 'x' },
      { graphId: 'c', file: join(folder, 'c.mjs'), exportName: 'default' },
    ]);
  });

  it('says everything that is wrong at once, with the place', async () => {
    const text = await issues(
      {
        graphs: { py: './agent.py:graph' },
        auth: { path: './auth.ts:auth' },
        encryption: { path: './enc.ts' },
        webhooks: { headers: { Authorization: 'Bearer ${{ env.SECRET }}', 'X-Y': '${{ env.LG_WEBHOOK_MISSING }}' } },
        http: { cors: { allow_origin_regex: '(' } },
      },
      { SECRET: 'not to be told' },
    );
    for (const part of ['graphs.py', 'auth:', 'encryption:', 'SECRET does not begin', 'LG_WEBHOOK_MISSING', 'regex']) {
      assert.ok(text.includes(part), part);
    }
    assert.ok(!text.includes('not to be told'));
  });

  it('is refused when it is no JSON, not there, or of another shape', async () => {
    assert.match(await issues('{'), /langgraph\.json/);
    assert.match(await issues({}), /graphs/);
    assert.match(await issues({ graphs: { a: 5 } }), /graphs\.a: expected "\.\/file\.ts:export"/);
    assert.match(await issues({ graphs: {}, env: ['A'] }), /env/);
    const missing = await readDeploymentConfig(join(folder, 'none.json'), {});
    assert.equal(missing.kind, 'invalid');
  });

  it('may begin with a byte order mark', async () => {
    const reading = await read('\uFEFF{"graphs":{}}');
    assert.equal(reading.kind, 'read');
  });

  it('brings an environment, under what the process has', async () => {
    await writeFile(join(folder, '.env'), 'A=file\nB="two words"\n');
    const config = await accepted({ env: '.env' }, { A: 'process' });
    assert.equal(config.environment['A'], 'process');
    assert.equal(config.environment['B'], 'two words');
    assert.equal((await accepted({ env: { C: '3' } })).environment['C'], '3');
  });

  it('starts without an environment file that is missing, and says so', async () => {
    const reading = await read({ graphs: {}, env: 'absent.env' });
    assert.ok(reading.kind === 'read');
    assert.match(reading.warnings.join(), /absent\.env/);
  });

  it('resolves variables in the headers of webhooks', async () => {
    const config = await accepted(
      {
        webhooks: {
          headers: { Authorization: 'Bearer ${{ env.LG_WEBHOOK_TOKEN }}' },
          url: { require_https: true, allowed_domains: ['*.example.com'], allowed_ports: [443], max_url_length: 99 },
        },
      },
      { LG_WEBHOOK_TOKEN: 't' },
    );
    assert.deepEqual(config.webhooks, {
      headers: { authorization: 'Bearer t' },
      requireHttps: true,
      allowedDomains: ['*.example.com'],
      allowedPorts: [443],
      maxUrlLength: 99,
    });
    assert.match(
      await issues(
        { graphs: {}, webhooks: { headers: { A: '${{ env.LG_WEBHOOK_TOKEN }}' } } },
        { LG_WEBHOOK_TOKEN: 'a\r\nb' },
      ),
      /line break/,
    );
  });

  it('turns off groups of routes and webhooks, and moves the API below a prefix', async () => {
    const config = await accepted({
      http: { disable_store: true, disable_meta: true, disable_webhooks: true, mount_prefix: '/api' },
    });
    assert.deepEqual(config.disabled, ['store', 'meta']);
    assert.equal(config.disableWebhooks, true);
    assert.equal(config.mountPrefix, '/api');
  });

  it('narrows origins, and takes a pattern alone as the whole list', async () => {
    const open = await accepted({});
    assert.deepEqual([open.cors.allowOrigins, open.hasOwnOrigins], [['*'], false]);
    const pattern = await accepted({ http: { cors: { allow_origin_regex: 'https://.*\\.example\\.com' } } });
    assert.deepEqual([pattern.cors.allowOrigins, pattern.hasOwnOrigins], [[], true]);
  });

  it('sets times to live in minutes', async () => {
    const config = await accepted({
      checkpointer: { ttl: { strategy: 'keep_latest', default_ttl: 10, sweep_interval_minutes: 2, sweep_limit: 5 } },
      store: { ttl: { default_ttl: 1, refresh_on_read: false } },
    });
    assert.deepEqual(config.threadTtl, { strategy: 'keep_latest', ttlMs: 600_000 });
    assert.deepEqual(config.storeTtl, { defaultMs: 60_000, refreshOnRead: false });
    assert.deepEqual(config.sweep, { intervalMs: 120_000, threadCount: 5 });
  });
});
