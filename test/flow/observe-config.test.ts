/** The configuration in effect over HTTP: what `--check` prints, with no secret in it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { EffectiveConfig } from '../../src/core/pipeline.ts';
import { startHost } from './pipelinehost.ts';

const hosts: { stop(): Promise<void> }[] = [];
after(async () => {
  for (const each of hosts) await each.stop();
});

async function configUrl(environment: Record<string, string>): Promise<string> {
  const host = await startHost(environment);
  hosts.push(host);
  return `http://127.0.0.1:${host.service.port}/api/config`;
}

test('every variable is there with its value, its source and its meaning, secrets masked', async () => {
  const url = await configUrl({
    SERVICE_API_KEY: 'the-secret-key',
    BATCH_SIZE: '77',
    DEPLOYMENT_API_KEYS: 'one-key,other-key',
    SERVICE_PROJEKT: 'typo',
  });
  const response = await fetch(url, { headers: { 'x-api-key': 'other-key' } });
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const text = await response.text();
  assert.doesNotMatch(text, /the-secret-key|one-key|other-key/);
  const { variables, warnings } = JSON.parse(text) as EffectiveConfig;
  const named = (name: string) => variables.find((variable) => variable.name === name);
  assert.deepEqual([named('BATCH_SIZE')?.shown, named('BATCH_SIZE')?.source], ['77', 'BATCH_SIZE']);
  assert.equal(named('MAX_RETRIES')?.source, 'default');
  assert.match(named('SERVICE_API_KEY')?.shown ?? '', /^\*+ \(14 characters\)$/);
  assert.ok(variables.every(({ meaning }) => meaning !== ''));
  assert.ok(warnings.some((warning) => warning.includes('SERVICE_PROJEKT')));
});

test('it is shown to whom the pipeline is shown, and only read', async () => {
  const open = await configUrl({ DEPLOYMENT_API: 'off' });
  assert.equal((await fetch(open)).status, 200);
  assert.equal((await fetch(open, { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 403);
  assert.equal((await fetch(open, { method: 'POST' })).status, 405);
  const keyed = await configUrl({ DEPLOYMENT_API_KEYS: 'a-key' });
  assert.equal((await fetch(keyed)).status, 401);
});
