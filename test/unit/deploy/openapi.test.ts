import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { docsPage } from '../../../src/deploy/docs.ts';
import { OPERATIONS, openApiDocument } from '../../../src/deploy/openapi.ts';
import { assistantRoutes } from '../../../src/deploy/routes/assistants.ts';
import { cronRoutes } from '../../../src/deploy/routes/crons.ts';
import { graphRoutes } from '../../../src/deploy/routes/graphs.ts';
import { runRoutes } from '../../../src/deploy/routes/runs.ts';
import { stateRoutes } from '../../../src/deploy/routes/state.ts';
import { statelessRoutes } from '../../../src/deploy/routes/stateless.ts';
import { storeRoutes } from '../../../src/deploy/routes/store.ts';
import { systemRoutes } from '../../../src/deploy/routes/system.ts';
import { threadRoutes } from '../../../src/deploy/routes/threads.ts';
import { webhookRoutes } from '../../../src/deploy/routes/webhooks.ts';

/** Listing routes calls none of their handlers. */
const nothing = {} as never;

describe('the description of the API', () => {
  const document = openApiDocument({ version: '1.2.3', mountPrefix: '' });

  it('lists exactly the routes that there are', () => {
    const routes = [
      ...assistantRoutes(nothing),
      ...cronRoutes(nothing),
      ...graphRoutes(nothing),
      ...runRoutes(nothing),
      ...stateRoutes(nothing),
      ...statelessRoutes(nothing),
      ...storeRoutes(nothing),
      ...systemRoutes(nothing),
      ...threadRoutes(nothing),
      ...webhookRoutes(nothing),
    ];
    const spelled = (entries: readonly { method: string; pattern: string }[]) =>
      entries.map(({ method, pattern }) => `${method} ${pattern}`).sort();
    assert.deepEqual(spelled(OPERATIONS), spelled(routes));
  });

  it('describes every body, and names every path parameter', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods)) {
        const described = operation as { parameters: { name: string; in: string }[]; requestBody?: unknown };
        const named = described.parameters
          .filter((parameter) => parameter.in === 'path')
          .map(({ name }) => `{${name}}`);
        assert.deepEqual(named, path.match(/\{\w+\}/g) ?? []);
      }
    }
    const text = JSON.stringify(document);
    assert.match(text, /"multitask_strategy"/);
    assert.match(text, /"if_not_exists"/);
  });

  it('is a page that fetches nothing', () => {
    const page = docsPage(document);
    assert.match(page, /\/threads\/\{thread_id\}\/runs\/stream/);
    assert.doesNotMatch(page, /<script|src=|https?:\/\//i);
  });
});
