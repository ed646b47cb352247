/** Deployments: what the deployment API serves, and a place to try it. */
import { useMemo } from 'preact/hooks';
import { useLoaded } from '../../api/load.ts';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { PageProps } from '../../shell/page.tsx';
import '../../style/trace.css';
import '../../style/pipeline.css';
import '../../style/deployments.css';
import { createDeployments } from './api.ts';
import { Assistants } from './assistants.tsx';
import { Crons } from './crons.tsx';
import { Playground } from './playground.tsx';
import { Threads } from './threads.tsx';

const PARTS = [
  ['playground', 'Playground'],
  ['assistants', 'Assistants'],
  ['threads', 'Threads'],
  ['crons', 'Crons'],
] as const;

export default function DeploymentsPage({ rest, params }: PageProps) {
  const { deployment, facts, router } = useServices();
  const deployments = useMemo(() => createDeployments(deployment), [deployment]);
  const [part = 'playground', chosenId = null] = rest;
  const isServed = facts.value?.deployment !== null;
  const assistants = useLoaded(
    (signal) => (isServed ? deployments.assistants(signal) : Promise.resolve([])),
    [isServed],
    [part],
  );
  useKeys(
    'Deployments',
    PARTS.map(([path, title], index) => ({
      keys: String(index + 1),
      label: title,
      run: () => router.go(`/console/deployments/${path}`),
    })),
  );
  if (!isServed) {
    return (
      <Empty title="No deployment API">
        <p>
          It is switched off here: <code>DEPLOYMENT_API=off</code>.
        </p>
      </Empty>
    );
  }
  const found = assistants.value;
  return (
    <div class="deployments">
      <h1 class="hidden">Deployments</h1>
      <nav class="subnav" aria-label="Deployments">
        {PARTS.map(([path, title]) => (
          <a key={path} href={`/console/deployments/${path}`} aria-current={path === part ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {found === null ? (
        assistants.error !== null && <Trouble message={assistants.error} retry={() => assistants.reload()} />
      ) : part === 'assistants' ? (
        <Assistants deployments={deployments} assistants={found} chosenId={chosenId} />
      ) : part === 'threads' ? (
        <Threads deployments={deployments} assistants={found} chosenId={chosenId} params={params} />
      ) : part === 'crons' ? (
        <Crons deployments={deployments} assistants={found} />
      ) : part === 'playground' ? (
        <Playground deployments={deployments} assistants={found} params={params} />
      ) : (
        <Trouble message="There is no such page." />
      )}
    </div>
  );
}
