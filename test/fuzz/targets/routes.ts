/**
 * Requests to the deployment API, its store behind it: every one gets an answer that is not a defect of ours. Without
 * graphs, since what a graph does takes its own time.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HttpRequest, HttpSink } from '../../../src/core/http.ts';
import type { Log } from '../../../src/core/log.ts';
import { createDeployment } from '../../../src/deploy/app.ts';
import { defaultCors } from '../../../src/deploy/cors.ts';
import { OPERATIONS } from '../../../src/deploy/openapi.ts';
import { jsonMutators } from '../jsontree.ts';
import type { Target } from '../target.ts';

const THREAD = '00000000-0000-4000-8000-000000000001';
const RESPONSE_LIMIT_BYTES = 1024 * 1024;

/** First line: method and target. The rest: the body. */
export async function open(): Promise<Target> {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-'));
  let defect: unknown = null;
  const quiet = (): void => undefined;
  const log: Log = {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (fields) => (defect ??= (fields as { err?: unknown }).err ?? fields),
    child: () => log,
  };
  const deployment = createDeployment({
    graphs: [],
    folder,
    environment: {},
    location: { engine: 'sqlite', folder, synchronous: 'normal' },
    access: { apiKeys: [], auth: 'none', trustedOrigins: () => true },
    cors: defaultCors,
    mountPrefix: '',
    log,
  });
  await deployment.start();
  // Opens the store, which takes longer than any request may.
  await deployment.app.handle(requestOf('POST', '/threads/search', '', new Uint8Array(0)));
  return {
    maxInputBytes: 4096,
    seeds: () =>
      OPERATIONS.map(({ method, pattern, query }) => {
        const path = pattern.replace(/:thread_id|:run_id|:cron_id/g, THREAD).replace(/:\w+\*?/g, 'x');
        const search =
          query === undefined
            ? ''
            : `?${query.map((one) => `${typeof one === 'string' ? one : one.name}=1`).join('&')}`;
        return Buffer.from(
          `${method} ${path}${search}\n{"thread_id":"${THREAD}","namespace":["a"],"key":"k","value":{}}`,
        );
      }),
    dictionary: [
      ...[
        'GET ',
        'POST ',
        'PUT ',
        'PATCH ',
        'DELETE ',
        '/threads',
        '/store/items',
        '/runs/crons',
        '/search',
        '%2F',
        '%00',
      ],
      ...[
        '"metadata":{"a":1}',
        '"values":{"a":1}',
        '"filter":{"a":{"$gt":1}}',
        '"namespace":["a"]',
        '"namespace_prefix":["a"]',
      ],
      ...[
        '"match_conditions":[{"match_type":"prefix","path":["a"]}]',
        '"if_exists":"do_nothing"',
        '"ttl":{"ttl":1}',
        THREAD,
      ],
      ...[
        '"select":["values"]',
        '"extract":{"a":"values.a"}',
        '"sort_by":"thread_id"',
        '"limit":1',
        '"offset":1',
        '"ids":[',
      ],
    ],
    mutators: jsonMutators,
    run: async (input) => {
      const end = input.indexOf(10);
      const line = Buffer.from(input.subarray(0, end < 0 ? input.length : end)).toString('latin1');
      const [, method = '', path = '', query = ''] = /^([A-Z]{1,10}) (\/[^ ?]*)(?:\?(.*))?$/s.exec(line) ?? [];
      if (path === '' || !deployment.app.claims(path)) return;
      const body = end < 0 ? new Uint8Array(0) : input.slice(end + 1);
      defect = null;
      const response = await deployment.app.handle(requestOf(method, path, query, body));
      if (defect !== null) throw defect instanceof Error ? defect : new Error(JSON.stringify(defect));
      assert.ok(response.status >= 200 && response.status < 500, `${response.status}`);
      if ('stream' in response) response.stream(deafSink);
      else assert.ok((response.body?.length ?? 0) < RESPONSE_LIMIT_BYTES);
    },
    close: async () => {
      await deployment.stop(1000);
      await rm(folder, { recursive: true });
    },
  };
}

function requestOf(method: string, path: string, query: string, body: Uint8Array): HttpRequest {
  return {
    method,
    path,
    query,
    body,
    header: () => '',
    headers: new Map(),
    remoteAddress: '127.0.0.1',
    requestId: 'fuzz',
    // The client leaves at once: what would wait must not.
    signal: AbortSignal.abort(),
  };
}

const deafSink: HttpSink = {
  write: () => false,
  bufferedBytes: 0,
  onDrain: () => undefined,
  end: () => undefined,
  abort: () => undefined,
  closed: true,
};
