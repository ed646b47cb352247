/** Everything else in full: every figure with its meaning, the figures of each shard, the configuration in effect. */
import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import type { EffectiveConfig, PipelineSnapshot } from '../../../../core/pipeline.ts';
import { useLoaded } from '../../api/load.ts';
import { useServices } from '../../services.ts';
import { amount, figuresOf, GROUP_TITLES, type Group } from './figures.ts';
import type { View } from './view.ts';

export interface FigureTableProps {
  readonly view: View;
  /** Null: of all. */
  readonly group: Group | null;
  readonly onGroup: (group: Group | null) => void;
  readonly search: RefObject<HTMLInputElement | null>;
}

export function FigureTable({ view, group, onGroup, search }: FigureTableProps) {
  const [text, setText] = useState('');
  const [zeros, setZeros] = useState(false);
  const wanted = text.toLowerCase();
  const rows = figuresOf(view).filter(
    (figure) =>
      (group === null || figure.group === group) &&
      (zeros || wanted !== '' || !figure.isZero) &&
      (wanted === '' || `${figure.name} ${figure.meaning}`.toLowerCase().includes(wanted)),
  );
  return (
    <section aria-labelledby="figures-title">
      <header class="section-head">
        <h2 id="figures-title">Figures</h2>
        <input
          ref={search}
          type="search"
          placeholder="Search names and meanings"
          aria-label="Search figures"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <select
          aria-label="Stage"
          value={group ?? ''}
          onChange={({ currentTarget: { value } }) => onGroup(value === '' ? null : (value as Group))}
        >
          <option value="">All stages</option>
          {Object.entries(GROUP_TITLES).map(([each, title]) => (
            <option key={each} value={each}>
              {title}
            </option>
          ))}
        </select>
        <label class="check">
          <input type="checkbox" checked={zeros} onChange={() => setZeros(!zeros)} /> zeros too
        </label>
        <span class="quiet">{rows.length} shown</span>
      </header>
      <div class="table-frame" tabIndex={0} role="group" aria-label="Figures, table">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">stage</th>
              <th scope="col">figure</th>
              <th scope="col" class="num">
                value
              </th>
              <th scope="col" class="num">
                lately, or limit
              </th>
              <th scope="col">meaning</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((figure) => (
              <tr key={`${figure.kind} ${figure.name}`}>
                <td class="quiet">{GROUP_TITLES[figure.group]}</td>
                <td class="mono">{figure.name}</td>
                <td class="num">{figure.value}</td>
                <td class="quiet num">{figure.note}</td>
                <td>{figure.meaning}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The snapshot alone has them; it is read again every few seconds while it is shown. */
export function ShardTable({ view }: { readonly view: View }) {
  const { api } = useServices();
  const round = Math.floor(view.now.atMs / 5000);
  const { value } = useLoaded((signal) => api.get<PipelineSnapshot>('/api/pipeline', { signal }), [], [round]);
  const { shards } = value ?? view.snapshot;
  if (shards.length < 2) return null;
  const names = Object.keys(shards[0] ?? {}).filter((name) => shards.some((shard) => shard[name] !== 0));
  return (
    <section aria-labelledby="shards-title">
      <header class="section-head">
        <h2 id="shards-title">Shards</h2>
      </header>
      <div class="table-frame" tabIndex={0} role="group" aria-label="Shards, table">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">figure</th>
              {shards.map((_, shard) => (
                <th key={shard} scope="col" class="num">
                  {shard}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td class="mono" title={view.snapshot.meanings.gauges[name]}>
                  {name}
                </td>
                {shards.map((shard, index) => (
                  <td key={index} class="num">
                    {amount(name, shard[name] ?? 0, view.now.atMs)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function ConfigTable() {
  const { api } = useServices();
  const { value, error } = useLoaded((signal) => api.get<EffectiveConfig>('/api/config', { signal }), []);
  const [own, setOwn] = useState(false);
  const rows = (value?.variables ?? []).filter(({ source }) => !own || source !== 'default');
  return (
    <section aria-labelledby="config-title">
      <header class="section-head">
        <h2 id="config-title">Configuration in effect</h2>
        <label class="check">
          <input type="checkbox" checked={own} onChange={() => setOwn(!own)} /> only what was set
        </label>
        {error !== null && <span class="bad">{error}</span>}
      </header>
      {value?.warnings.map((warning) => (
        <p key={warning} class="notice">
          {warning}
        </p>
      ))}
      <div class="table-frame" tabIndex={0} role="group" aria-label="Configuration, table">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">variable</th>
              <th scope="col">value</th>
              <th scope="col">from</th>
              <th scope="col">meaning</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, shown, source, meaning }) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td class="mono config-value">{shown}</td>
                <td class={source === 'default' ? 'quiet' : undefined}>{source === name ? 'environment' : source}</td>
                <td>{meaning.replaceAll('`', '')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
