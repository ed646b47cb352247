/** What was lost, refused or put off, by why, and which threads had to be replaced: since the start and in the last minute. */
import { count } from '../../parts/format.ts';
import { namesWith, type View } from './view.ts';

const KINDS: readonly (readonly [title: string, beginnings: readonly string[], none: string])[] = [
  ['Spans dropped', ['dropped_'], 'No span was dropped.'],
  ['Requests refused', ['refused_'], 'No request was refused.'],
  ['Requests put off', ['busy_'], 'No request was put off.'],
  ['Threads replaced', ['decode_workers_lost', 'ship_workers_lost', 'graph_workers_lost'], 'No thread died.'],
];

export function Losses({ view }: { readonly view: View }) {
  return (
    <div class="losses">
      {KINDS.map(([title, beginnings, none]) => {
        const rows = namesWith(view.now.counters, ...beginnings)
          .filter((name) => view.total(name) > 0)
          .sort((a, b) => view.lately(b) - view.lately(a) || view.total(b) - view.total(a));
        return (
          <section key={title} aria-label={title}>
            <h3>{title}</h3>
            {rows.length === 0 ? (
              <p class="quiet losses-none">{none}</p>
            ) : (
              <table class="losses-table">
                <thead>
                  <tr>
                    <th scope="col">why</th>
                    <th scope="col" class="num">
                      last minute
                    </th>
                    <th scope="col" class="num">
                      in all
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((name) => (
                    <tr key={name} class={view.lately(name) > 0 ? 'losses-new' : undefined}>
                      <td title={name}>{view.snapshot.meanings.counters[name] ?? name}</td>
                      <td class="num">{view.lately(name) === 0 ? '–' : count(view.lately(name))}</td>
                      <td class="num">{count(view.total(name))}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </section>
        );
      })}
    </div>
  );
}
