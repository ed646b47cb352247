/** Health, what this server is, and its description for people and tools. Works without database and graphs. */
import type { HttpResponse } from '../../core/http.ts';
import type { DescribedOperation } from '../../core/operation.ts';
import { jsonAnswer, textAnswer } from '../answer.ts';
import { queryBoolean } from '../body.ts';
import { problem } from '../problem.ts';
import type { Route } from '../router.ts';

export interface SystemRouteSettings {
  version: string;
  /** Version of the graph library, for clients that ask. */
  graphLibraryVersion: string;
  mountPrefix: string;
  otherOperations: readonly DescribedOperation[];
  /** Rejects when the database does not answer; opens it when it is not open. */
  ping(): Promise<void>;
}

export function systemRoutes(settings: SystemRouteSettings): Route[] {
  // Read rarely: made when first asked for.
  const described = once(async () => (await import('../openapi.ts')).openApiDocument(settings));
  const document = once(async () => JSON.stringify(await described()));
  const page = once(async () => (await import('../docs.ts')).docsPage(await described()));

  const ok: Route['handler'] = async ({ query }): Promise<HttpResponse> => {
    const checkDatabase = queryBoolean(query, 'check_db', false);
    if (checkDatabase === null) return problem('invalid', 'check_db: must be true or false');
    if (checkDatabase) {
      try {
        await settings.ping();
      } catch {
        // Why is in the log of whoever uses the database; a prober needs the status only.
        return problem('internal', 'The database does not answer');
      }
    }
    return jsonAnswer({ ok: true });
  };

  return [
    { method: 'GET', pattern: '/ok', handler: ok },
    {
      method: 'GET',
      pattern: '/info',
      handler: () =>
        jsonAnswer({
          version: settings.version,
          langgraph_js_version: settings.graphLibraryVersion,
          flags: { assistants: true, crons: true, langsmith: false, langsmith_tracing_replicas: false },
          metadata: {},
        }),
    },
    { method: 'GET', pattern: '/openapi.json', handler: async () => textAnswer(await document()) },
    {
      method: 'GET',
      pattern: '/docs',
      handler: async () => ({
        status: 200,
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
        },
        body: await page(),
      }),
    },
  ];
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
