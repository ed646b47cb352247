/** Pipeline: whether spans get through, where they are held up and why, over the last minutes; and how it is configured. */
import { useRef, useState } from 'preact/hooks';
import { duration } from '../../parts/format.ts';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { PageProps } from '../../shell/page.tsx';
import '../../style/pipeline.css';
import { Chart } from './chart.tsx';
import { chartsOf } from './charts.ts';
import { useFeed } from './feed.ts';
import type { Group } from './figures.ts';
import { judge, STAGE_IDS, type Health, type StageId } from './health.ts';
import { Losses } from './losses.tsx';
import { LevelBadge, Picture } from './picture.tsx';
import { spoolOf, stagesOf } from './stages.ts';
import { ConfigTable, FigureTable, ShardTable } from './tables.tsx';
import type { View } from './view.ts';

const WINDOWS: readonly (readonly [label: string, windowMs: number])[] = [
  ['1 min', 60_000],
  ['5 min', 300_000],
  ['10 min', 600_000],
];

export default function Pipeline({ params }: PageProps) {
  const { facts, router } = useServices();
  const { view, track, live, error } = useFeed();
  const [group, setGroup] = useState<Group | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const windowMs = WINDOWS.find(([, ms]) => String(ms / 60_000) === params.get('minutes'))?.[1] ?? 300_000;
  const setWindow = (ms: number): void => router.setParams({ minutes: String(ms / 60_000) });
  const selected = STAGE_IDS.find((id) => id === group) ?? null;
  const step = (by: number): void => {
    const at = selected === null ? (by > 0 ? -1 : 0) : STAGE_IDS.indexOf(selected);
    const next = STAGE_IDS[(at + by + STAGE_IDS.length) % STAGE_IDS.length] ?? null;
    setGroup(next);
    document.querySelector<HTMLElement>(`[data-stage=${next ?? ''}] button`)?.focus();
  };
  useKeys('Pipeline', [
    { keys: 'j', label: 'Next stage', run: () => step(1) },
    { keys: 'k', label: 'Stage before', run: () => step(-1) },
    { keys: '/', label: 'Search figures', run: () => search.current?.focus() },
    ...WINDOWS.map(([label, ms], index) => ({
      keys: String(index + 1),
      label: `Last ${label}`,
      run: () => setWindow(ms),
    })),
    {
      keys: 'Escape',
      run: () => {
        if (group === null) return false;
        setGroup(null);
        return true;
      },
    },
  ]);

  if (view === null) return error === null ? <Empty title="Reading the figures" /> : <Trouble message={error} />;
  const health = judge(view);
  const toggle = (id: StageId): void => setGroup(group === id ? null : id);
  return (
    <div class="pipeline">
      <Headline view={view} health={health} live={live} />
      <Picture
        stages={stagesOf(view, facts.value?.endpoint ?? '')}
        spool={spoolOf(view)}
        health={health}
        selected={selected}
        onSelect={toggle}
      />
      <section aria-labelledby="minutes-title">
        <header class="section-head">
          <h2 id="minutes-title">The last minutes</h2>
          <div class="segments" role="group" aria-label="How far back">
            {WINDOWS.map(([label, ms]) => (
              <button
                key={label}
                type="button"
                class="small"
                aria-pressed={ms === windowMs}
                onClick={() => setWindow(ms)}
              >
                {label}
              </button>
            ))}
          </div>
        </header>
        <div class="charts">
          {chartsOf(view, track).map((spec) => (
            <Chart key={spec.id} spec={spec} track={track} windowMs={windowMs} />
          ))}
        </div>
      </section>
      <Losses view={view} />
      <FigureTable view={view} group={group} onGroup={setGroup} search={search} />
      <ShardTable view={view} />
      <ConfigTable />
    </div>
  );
}

function Headline({ view, health, live }: { readonly view: View; readonly health: Health; readonly live: boolean }) {
  const { level, reasons } = health.overall;
  const upMs = Math.round((view.now.atMs - view.snapshot.startedMs) / 1000) * 1000;
  return (
    <header class={`headline headline-${level}`}>
      <h1 class="hidden">Pipeline</h1>
      <div role="status" class="headline-state">
        <LevelBadge level={level} />
        {reasons.length === 0 ? (
          <p>{level === 'idle' ? 'Nothing comes in; everything is ready.' : 'Spans come in and get through.'}</p>
        ) : (
          <ul>
            {reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        )}
      </div>
      <p class="quiet headline-facts">
        {live ? (
          <span class="badge badge-good">live</span>
        ) : (
          <span class="badge badge-bad">no connection, trying again</span>
        )}{' '}
        up {duration(Math.max(0, upMs))}
      </p>
    </header>
  );
}
