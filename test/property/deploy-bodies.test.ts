import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { HttpRequest } from '../../src/core/http.ts';
import { readBody } from '../../src/deploy/body.ts';
import { OPERATIONS } from '../../src/deploy/openapi.ts';
import { newRun, runRequest } from '../../src/deploy/request.ts';

const schemas = OPERATIONS.flatMap((operation) => (operation.body === undefined ? [] : [operation]));
const keys = fc.oneof(
  fc.constantFrom(
    ...['assistant_id', 'input', 'command', 'config', 'metadata', 'checkpoint', 'stream_mode', 'multitask_strategy'],
    ...['limit', 'offset', 'sort_by', 'values', 'ids', 'thread_id', 'schedule', 'timezone', 'end_time', 'namespace'],
    ...['key', 'value', 'filter', 'ttl', 'supersteps', 'updates', 'webhook', '__proto__', 'constructor', 'toString'],
  ),
  fc.string(),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1, 1e308, 'agent', 'values', '*', '* * * * *', '2026-01-01', ''),
    fc.string({ unit: 'binary' }),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(keys, tie('json'), { maxKeys: 5 }),
  ),
}));

const request = (body: Uint8Array): HttpRequest => ({ body }) as HttpRequest;

describe('bodies of requests', () => {
  it('are taken or refused with a reason, whatever they hold', () => {
    fc.assert(
      fc.property(fc.constantFrom(...schemas), json, ({ body }, document) => {
        assert.ok(body !== undefined);
        const read = readBody(request(new TextEncoder().encode(JSON.stringify(document))), body);
        if (read.ok) return;
        assert.ok([400, 422].includes(read.response.status));
        const { detail } = JSON.parse(String(read.response.body)) as { detail: string };
        assert.ok(detail.length > 0);
      }),
      { numRuns: 2000 },
    );
  });

  it('that are arbitrary bytes are refused or taken, never thrown at', () => {
    fc.assert(
      fc.property(fc.constantFrom(...schemas), fc.uint8Array({ maxLength: 100 }), ({ body }, bytes) => {
        assert.ok(body !== undefined);
        readBody(request(bytes), body);
      }),
    );
  });

  it('of runs that are taken make a run whose kwargs are JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(keys, json, { maxKeys: 8 }), (document) => {
        const parsed = runRequest.safeParse({ ...document, assistant_id: 'agent' });
        if (!parsed.success) return;
        const origin = { runId: 'r', newThreadId: 't', threadId: null, webhook: null, claim: null, nowMs: 0 };
        const run = newRun(parsed.data, origin);
        assert.equal(typeof JSON.parse(run.restJson), 'object');
        assert.ok(Number.isSafeInteger(run.notBeforeMs));
      }),
    );
  });
});
