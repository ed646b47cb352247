/** Assistants: which there are, and of one its graph, its schemas and how it is configured. */
import { useState } from 'preact/hooks';
import { useLoaded } from '../../api/load.ts';
import { Json } from '../../parts/json.tsx';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { Assistant, Deployments } from './api.ts';
import { useChoice } from './choice.ts';
import { GraphPicture } from './graph.tsx';
import { Time } from './words.tsx';

export interface AssistantsProps {
  readonly deployments: Deployments;
  readonly assistants: readonly Assistant[];
  readonly chosenId: string | null;
}

export function Assistants({ deployments, assistants, chosenId }: AssistantsProps) {
  const { router } = useServices();
  const chosen = assistants.find(({ assistant_id: id }) => id === chosenId) ?? assistants[0];
  const list = useChoice(
    'Assistants',
    assistants.map(({ assistant_id: id }) => id),
    chosen?.assistant_id ?? null,
    (id) => router.go(assistantHref(id), { replace: true }),
  );
  if (chosen === undefined) {
    return (
      <Empty title="No assistants">
        <p>Name graphs in a langgraph.json; each comes with an assistant of its own.</p>
      </Empty>
    );
  }
  return (
    <div class="duo">
      <ul ref={list} class="side-list" aria-label="Assistants">
        {assistants.map(({ assistant_id: id, name, graph_id: graphId }) => (
          <li key={id}>
            <a href={assistantHref(id)} aria-current={id === chosen.assistant_id ? 'true' : undefined}>
              <b class="cut">{name}</b>
              <span class="quiet cut">{graphId}</span>
            </a>
          </li>
        ))}
      </ul>
      <AssistantDetail key={chosen.assistant_id} deployments={deployments} assistant={chosen} />
    </div>
  );
}

function AssistantDetail({
  deployments,
  assistant,
}: {
  readonly deployments: Deployments;
  readonly assistant: Assistant;
}) {
  const { router } = useServices();
  const { assistant_id: id, name, description, graph_id: graphId, version } = assistant;
  const [xray, setXray] = useState(false);
  const drawing = useLoaded((signal) => deployments.graph(id, xray, signal), [id], [xray]);
  const schemas = useLoaded((signal) => deployments.schemas(id, signal), [id]);
  useKeys('Assistant', [
    { keys: 'x', label: 'Look into subgraphs', run: () => setXray(!xray) },
    {
      keys: 'Enter',
      label: 'Try it',
      run: (event) =>
        event.target instanceof HTMLAnchorElement || event.target instanceof HTMLButtonElement
          ? false
          : router.go(playgroundHref(id)),
    },
  ]);
  return (
    <article class="duo-detail" aria-label={`Assistant ${name}`}>
      <header class="thing-head">
        <h2>{name}</h2>
        <span class="badge">version {version}</span>
        <span class="quiet">
          graph <code>{graphId}</code>, <Time at={assistant.updated_at} />
        </span>
        <span class="grow" />
        <a class="as-button primary" href={playgroundHref(id)}>
          Try it
        </a>
      </header>
      {description !== null && <p>{description}</p>}
      <section class="card" aria-label="Graph">
        <header class="section-head">
          <h3>Graph</h3>
          <label class="check">
            <input type="checkbox" checked={xray} onChange={() => setXray(!xray)} /> look into subgraphs
          </label>
          <span class="quiet">dashed: where a condition may lead</span>
        </header>
        {drawing.error !== null && <Trouble message={drawing.error} retry={() => drawing.reload()} />}
        <div class="graph-frame" tabIndex={0} role="group" aria-label="Drawing">
          {drawing.value !== null && <GraphPicture drawing={drawing.value} />}
        </div>
      </section>
      <div class="cards">
        <section class="card" aria-label="Schemas">
          <h3>Schemas</h3>
          {schemas.error !== null && <p class="bad">{schemas.error}</p>}
          {schemas.value !== null && <Json value={schemas.value} openDepth={2} />}
        </section>
        <section class="card" aria-label="Settings">
          <h3>Settings</h3>
          <Json
            value={{
              assistant_id: id,
              config: assistant.config,
              context: assistant.context,
              metadata: assistant.metadata,
            }}
            openDepth={2}
          />
        </section>
      </div>
    </article>
  );
}

export function assistantHref(id: string): string {
  return `/console/deployments/assistants/${encodeURIComponent(id)}`;
}

export function playgroundHref(
  assistantId: string,
  more: { readonly thread?: string; readonly checkpoint?: string } = {},
): string {
  const params = new URLSearchParams({ assistant: assistantId, ...more });
  return `/console/deployments/playground?${params.toString()}`;
}
