import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createRouter } from '../../../src/deploy/router.ts';
import type { Route } from '../../../src/deploy/router.ts';

const UUID = '01a1f8c5-079e-774d-bc33-a9bb74b0a255';
const route = (method: string, pattern: string): Route => ({ method, pattern, handler: () => ({ status: 200 }) });
const ROUTES = [
  route('POST', '/threads'),
  route('POST', '/threads/search'),
  route('GET', '/threads/:thread_id'),
  route('DELETE', '/threads/:thread_id'),
  route('POST', '/threads/:thread_id/runs'),
  route('GET', '/threads/:thread_id/runs/:run_id'),
  route('POST', '/threads/:thread_id/runs/stream'),
  route('GET', '/assistants/:assistant_id/subgraphs/:namespace'),
  route('DELETE', '/runs/crons/:cron_id'),
];
const router = createRouter(ROUTES, '');
const kind = (method: string, path: string) => router.match(method, path).kind;

describe('the router', () => {
  it('finds fixed paths before parameters, and gives parameters decoded', () => {
    assert.equal(kind('POST', '/threads/search'), 'found');
    const match = router.match('GET', `/threads/${UUID.toUpperCase()}/runs/${UUID}`);
    assert.deepEqual(match.kind === 'found' && match.params, { thread_id: UUID, run_id: UUID });
    const subgraph = router.match('GET', '/assistants/my%20graph%2Fx/subgraphs/a%7Cb');
    assert.deepEqual(subgraph.kind === 'found' && subgraph.params, { assistant_id: 'my graph/x', namespace: 'a|b' });
  });

  it('serves the singular spelling of thread routes', () => {
    assert.equal(kind('POST', `/thread/${UUID}/runs`), 'found');
    assert.equal(kind('POST', `/thread/${UUID}/runs/stream`), 'found');
    assert.equal(kind('POST', '/thread'), 'not-found');
  });

  it('says what is wrong with a path that it has not', () => {
    assert.equal(kind('GET', '/nowhere'), 'not-found');
    assert.equal(kind('GET', '/'), 'not-found');
    assert.equal(kind('GET', `/threads/${UUID}/nothing`), 'not-found');
    assert.equal(kind('GET', '/runs'), 'not-found');
    assert.deepEqual(router.match('PUT', `/threads/${UUID}`), {
      kind: 'method-not-allowed',
      allowed: ['DELETE', 'GET'],
    });
    assert.equal(kind('GET', '/threads/not-a-uuid'), 'invalid');
    assert.equal(kind('GET', `/threads/${UUID}%00`), 'invalid');
    assert.equal(kind('GET', `/threads/..%2F${UUID}`), 'invalid');
    assert.equal(kind('GET', `/threads//${UUID}`), 'not-found');
    for (const escape of ['%', '%2', '%zz', '%ff', '%c0%80', '%ed%a0%80']) {
      assert.equal(kind('GET', `/threads/${escape}`), 'malformed', escape);
    }
  });

  it('lives below a prefix, and there alone', () => {
    const mounted = createRouter(ROUTES, '/api/v1/');
    assert.equal(mounted.match('POST', '/api/v1/threads').kind, 'found');
    assert.equal(mounted.match('POST', '/threads').kind, 'not-found');
    assert.equal(mounted.claims('/api/v1/threads/x'), true);
    assert.equal(mounted.claims('/api/v1'), false);
    assert.equal(mounted.claims('/threads'), false);
    assert.equal(router.claims('/v1/traces'), false);
  });

  it('never throws, whatever the path', () => {
    const segment = fc.oneof(
      fc.constantFrom('threads', 'thread', 'runs', 'crons', 'search', UUID, '', '.', '..', '%', '%2e%2e', '__proto__'),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.constantFrom('GET', 'POST', 'constructor', ''), fc.array(segment), (method, segments) => {
        router.claims(segments.join('/'));
        router.match(method, `/${segments.join('/')}`);
      }),
    );
  });
});
