/** What an assistant's graph looks like: drawing, schemas, subgraphs. */
import type { HttpResponse } from '../../core/http.ts';
import { textAnswer } from '../answer.ts';
import { queryBoolean, queryText } from '../body.ts';
import type { GraphPool } from '../graph/pool.ts';
import type { CallConfig, GraphCall } from '../graph/protocol.ts';
import { assistantIdOf } from '../ids.ts';
import { problem } from '../problem.ts';
import type { Route } from '../router.ts';
import type { Assistant } from '../store/model.ts';
import type { AssistantRepository } from '../store/repositories.ts';
import { refusalAnswer } from './state.ts';

export interface GraphRouteSettings {
  assistants: AssistantRepository;
  pool: GraphPool;
}

export function graphRoutes(settings: GraphRouteSettings): Route[] {
  const { assistants, pool } = settings;

  const withAssistant = async (
    assistantId: string,
    callFor: (graphId: string, config: CallConfig) => GraphCall | HttpResponse,
  ): Promise<HttpResponse> => {
    const assistant = await assistants.get(assistantIdOf(assistantId));
    if (assistant === null) return problem('not-found', `Assistant ${assistantId} not found`);
    const call = callFor(assistant.graphId, configOf(assistant));
    if ('status' in call) return call;
    const result = await pool.call(call);
    return result.kind === 'answer' ? textAnswer(result.json) : refusalAnswer(result);
  };

  const subgraphs: Route['handler'] = ({ params, query }) =>
    withAssistant(params['assistant_id'] ?? '', (graphId, config) => {
      const recurse = queryBoolean(query, 'recurse', false);
      if (recurse === null) return problem('invalid', 'recurse: must be true or false');
      return { kind: 'subgraphs', graphId, config, namespace: params['namespace'] ?? null, recurse };
    });

  return [
    {
      method: 'GET',
      pattern: '/assistants/:assistant_id/graph',
      handler: ({ params, query }) =>
        withAssistant(params['assistant_id'] ?? '', (graphId, config) => {
          const xray = depthOf(queryText(query, 'xray'));
          return xray === null
            ? problem('invalid', 'xray: must be true, false, or a depth')
            : { kind: 'drawing', graphId, config, xray };
        }),
    },
    {
      method: 'GET',
      pattern: '/assistants/:assistant_id/schemas',
      handler: ({ params }) =>
        withAssistant(params['assistant_id'] ?? '', (graphId, config) => ({ kind: 'schemas', graphId, config })),
    },
    { method: 'GET', pattern: '/assistants/:assistant_id/subgraphs', handler: subgraphs },
    { method: 'GET', pattern: '/assistants/:assistant_id/subgraphs/:namespace', handler: subgraphs },
  ];
}

function depthOf(text: string | null): boolean | number | null {
  if (text === null || text === '' || text === 'false' || text === 'False') return false;
  if (text === 'true' || text === 'True') return true;
  return /^\d{1,3}$/.test(text) ? Number(text) : null;
}

function configOf(assistant: Assistant): CallConfig {
  const configurable = assistant.config['configurable'];
  return {
    configurable:
      typeof configurable === 'object' && configurable !== null && !Array.isArray(configurable) ? configurable : {},
  };
}
