/** Crooked paths on every route of the deployment API, with keys and without: of group 15 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { EXAMPLES, specs } from '../deploy-server.ts';
import { sendRaw } from '../flow/rawhttp.ts';
import { operations, startApi, type ApiServer } from './apiserver.ts';

describe('crooked paths', () => {
  let server: ApiServer;
  let keyed: ApiServer;
  let threadId: string;

  before(async () => {
    server = await startApi({ graphs: specs(EXAMPLES, 'echo') });
    const access = { apiKeys: ['right'], auth: 'keys', trustedOrigins: () => false } as const;
    keyed = await startApi({ graphs: specs(EXAMPLES, 'echo'), settings: { access } });
    threadId = await server.thread();
  });
  after(async () => {
    await server.close();
    await keyed.close();
  });

  const crooked = (path: string): string[] => {
    const [, first = '', ...rest] = path.split('/');
    const tail = rest.length === 0 ? '' : `/${rest.join('/')}`;
    return [
      `/${path}`,
      `/./${path.slice(1)}`,
      `/x/..${path}`,
      `/%2e%2e${path}`,
      `/x/%2e%2e${path}`,
      `/${first}%2F${rest.join('/')}`,
      `/${first}//${rest.join('/')}`,
      `/${first}/..;${tail}`,
      `/${first}/x/..${tail}`,
      `/${first}%2f..%2f${first}${tail}`,
      `/${first};x=1${tail}`,
      `/${first}\\${rest.join('\\')}`,
      `/${first.toUpperCase()}${tail}`,
      `/%${first.charCodeAt(0).toString(16)}${first.slice(1)}${tail}`,
      `${path}%00`,
      `${path}%2F..`,
      `${path}/../../ok`,
      `${path}/%2e%2e/%2e%2e/ok`,
      `${path}#/ok`,
    ];
  };

  test('lead to no other resource than the one that they spell, on every route', async () => {
    const ids = {
      thread_id: threadId,
      run_id: randomUUID(),
      cron_id: randomUUID(),
      assistant_id: 'echo',
      checkpoint_id: 'c',
    };
    for (const { method, path } of operations(ids)) {
      for (const target of crooked(path)) {
        const request = `${method} ${target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n`;
        const answer = await sendRaw(server.port, request);
        assert.ok(answer.statusCode < 500, `${method} ${target}: ${answer.statusCode}`);
        // `/ok` would be another resource; so would a thread behind an escaped slash.
        assert.notEqual(answer.body.toString(), '{"ok":true}', `${method} ${target}`);
      }
    }
    assert.equal((await server.ask('GET', `/threads/${threadId}`)).status, 200, 'the thread is still there');
  });

  test('get nobody past the keys, on any route', async () => {
    const ids = { thread_id: threadId, run_id: randomUUID(), cron_id: randomUUID(), assistant_id: 'echo' };
    for (const { method, path } of operations(ids)) {
      assert.equal((await keyed.ask(method, path, method === 'GET' ? undefined : {})).status, 401, `${method} ${path}`);
      for (const target of crooked(path)) {
        const head = `${method} ${target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n`;
        for (const more of [
          '',
          'x-api-key: wrong\r\n',
          'x-api-key: \r\nauthorization: Bearer  \r\n',
          'x-auth-scheme: langsmith\r\n',
        ]) {
          const answer = await sendRaw(keyed.port, `${head}${more}\r\n`);
          assert.ok(
            [400, 401, 404, 405].includes(answer.statusCode),
            `${method} ${target} ${more}: ${answer.statusCode}`,
          );
        }
      }
    }
    assert.ok(keyed.counted('api_refused_unauthenticated') > 100);
  });
});
