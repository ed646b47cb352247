/** What the nodes of a run wrote, one after the other. */
import { useEffect, useState } from 'preact/hooks';
import { Json } from '../../parts/json.tsx';
import type { Step } from './transcript.ts';

export function Steps({ steps }: { readonly steps: readonly Step[] }) {
  const [end, setEnd] = useState<HTMLElement | null>(null);
  useEffect(() => end?.scrollIntoView({ block: 'nearest' }), [end, steps.length]);
  return (
    <aside class="steps" aria-label="Steps">
      <h2>Steps</h2>
      {steps.length === 0 && <p class="quiet">What the nodes write.</p>}
      <ol>
        {steps.map(({ number, event, node, data }) => (
          <li key={number}>
            <header>
              <span class="quiet num">{number}</span>
              <b>{node ?? event}</b>
              {node !== null && event !== 'updates' && <small class="quiet cut">{event}</small>}
            </header>
            <Json value={data} openDepth={1} />
          </li>
        ))}
      </ol>
      <div ref={setEnd} />
    </aside>
  );
}
