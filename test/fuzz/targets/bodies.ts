/** Bodies of the deployment API against their schemas: taken or refused with a reason; a run that is taken can be kept. */
import assert from 'node:assert/strict';
import type { HttpRequest } from '../../../src/core/http.ts';
import { queryBoolean, queryInteger, queryList, readBody } from '../../../src/deploy/body.ts';
import { OPERATIONS } from '../../../src/deploy/openapi.ts';
import { newRun, runRequest } from '../../../src/deploy/request.ts';
import { jsonMutators } from '../jsontree.ts';
import type { Target } from '../target.ts';

/** First byte: which operation. The rest: the body. */
export function open(): Target {
  const schemas = OPERATIONS.flatMap(({ body }) => (body === undefined ? [] : [body]));
  return {
    maxInputBytes: 4096,
    seeds: () =>
      schemas.map((_, index) => Buffer.from(`${String.fromCharCode(index)}{"assistant_id":"agent","input":{}}`)),
    dictionary: [
      ...['"assistant_id":"agent"', '"input":', '"command":{"resume":', '"checkpoint":', '"stream_mode":["values"]'],
      ...['"metadata":{', '"ids":[', '"filter":{"a":{"$gt":1}}', '"ttl":{"ttl":1}', '"namespace":["a"]', '"key":"k"'],
      ...['"schedule":"* * * * *"', '"timezone":"UTC"', '"supersteps":[{"updates":[', '"webhook":"https://a.b"'],
    ],
    mutators: jsonMutators,
    run: (input) => {
      const schema = schemas[(input[0] ?? 0) % schemas.length];
      assert.ok(schema !== undefined);
      const body = input.subarray(1);
      const read = readBody({ body } as HttpRequest, schema);
      if (!read.ok) {
        assert.ok([400, 422].includes(read.response.status));
        const { detail } = JSON.parse(String(read.response.body)) as { detail: string };
        assert.ok(detail.length > 0 && detail.length < 10_000);
      }
      const text = Buffer.from(body).toString();
      const query = new URLSearchParams(text);
      for (const name of [...query.keys()].slice(0, 5)) {
        queryBoolean(query, name, true);
        queryInteger(query, name, { fallback: 0, min: 0, max: 9 });
        queryList(query, name);
      }
      const run = read.ok ? runRequest.safeParse(read.value) : null;
      if (run?.success !== true) return;
      const origin = { runId: 'r', newThreadId: 't', threadId: null, webhook: null, claim: null, nowMs: 0 };
      const made = newRun(run.data, origin);
      assert.equal(typeof JSON.parse(made.restJson), 'object');
      assert.ok(Number.isSafeInteger(made.notBeforeMs));
    },
  };
}
