/** The bar above the list: every way to narrow it. What is chosen stands in the page's address. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Project } from '../../../../backend/api.ts';
import { duration, readDuration, time } from '../../parts/format.ts';
import { STATUS_WORDS } from '../../parts/runtype.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import { PARAM_NAMES, RANGES, RUN_TYPES, STATUSES, type TraceFilter } from './filter.ts';

export interface FiltersProps {
  readonly filter: TraceFilter;
  readonly projects: readonly Project[];
  readonly isNarrowed: boolean;
}

const TYPING_MS = 250;

export function Filters({ filter, projects, isNarrowed }: FiltersProps) {
  const { router } = useServices();
  const search = useRef<HTMLInputElement>(null);
  useKeys('Traces', [{ keys: '/', label: 'Search', run: () => search.current?.focus() }]);
  const set = router.setParams.bind(router);
  const clear = (): void => set(Object.fromEntries(PARAM_NAMES.map((name) => [name, null])));
  const names = [...new Set([...projects.map(({ name }) => name), ...filter.projects])];
  const range = customRange(filter);
  return (
    <form class="filters" role="search" aria-label="Traces" onSubmit={(event) => event.preventDefault()}>
      <TypedField
        inputRef={search}
        class="filter-text"
        label="Search"
        placeholder="Search names, messages, metadata…"
        value={filter.text}
        onChange={(text) => set({ text })}
      />
      <Choice
        label="Project"
        all="All projects"
        value={filter.projects[0] ?? ''}
        options={names.map((name) => [name, name])}
        onChange={(project) => set({ project })}
      />
      <Choice
        label="Status"
        all="Any status"
        value={filter.statuses[0] ?? ''}
        options={STATUSES.map((status) => [status, STATUS_WORDS[status]])}
        onChange={(status) => set({ status })}
      />
      <Choice
        label="Contains a run of type"
        all="Any run type"
        value={filter.runTypes[0] ?? ''}
        options={RUN_TYPES.map((type) => [type, type])}
        onChange={(type) => set({ run_type: type })}
      />
      {range === null ? (
        <Choice
          label="Time"
          all="All time"
          value={filter.last}
          options={Object.entries(RANGES).map(([name, { label }]) => [name, label])}
          onChange={(last) => set({ last, since: null, until: null })}
        />
      ) : (
        <button type="button" class="chip" title="Show all times" onClick={() => set({ since: null, until: null })}>
          {range} ×
        </button>
      )}
      <TypedField
        class="filter-short"
        label="Minimum duration"
        placeholder="≥ duration"
        value={filter.minMs === '' ? '' : duration(Number(filter.minMs)).replace(' ', '')}
        read={(typed) => (typed === '' ? '' : (readDuration(typed)?.toString() ?? null))}
        onChange={(value) => set({ min_duration_ms: value })}
      />
      <TypedField
        class="filter-short"
        label="Error contains"
        placeholder="Error contains"
        value={filter.error === 'true' || filter.error === 'false' ? '' : filter.error}
        onChange={(error) => set({ error })}
      />
      <label class="toggle">
        <input
          type="checkbox"
          checked={filter.error === 'true'}
          onChange={(event) => set({ error: event.currentTarget.checked ? 'true' : '' })}
        />
        Errors only
      </label>
      {filter.maxMs !== '' && (
        <button type="button" class="chip" onClick={() => set({ max_duration_ms: null })}>
          ≤ {duration(Number(filter.maxMs))} ×
        </button>
      )}
      {isNarrowed && (
        <button type="button" class="plain" onClick={clear}>
          Clear
        </button>
      )}
    </form>
  );
}

function customRange({ since, until }: TraceFilter): string | null {
  if (since === '' && until === '') return null;
  const shown = (text: string): string => {
    const date = new Date(/^\d+$/.test(text) ? Number(text) : text);
    return Number.isNaN(date.getTime()) ? text : time(date.toISOString());
  };
  return `${since === '' ? '…' : shown(since)} – ${until === '' ? '…' : shown(until)}`;
}

interface ChoiceProps {
  readonly label: string;
  /** The first option, which stands for no choice. */
  readonly all: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, all, value, options, onChange }: ChoiceProps) {
  return (
    <select
      class={value === '' ? '' : 'chosen'}
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{all}</option>
      {options.map(([option, words]) => (
        <option key={option} value={option}>
          {words}
        </option>
      ))}
    </select>
  );
}

interface TypedFieldProps {
  readonly label: string;
  readonly placeholder: string;
  readonly class: string;
  /** As it is in force. */
  readonly value: string;
  readonly inputRef?: { current: HTMLInputElement | null };
  /** What was typed, as it is to be put in force; null: not finished, or wrong. */
  readonly read?: (typed: string) => string | null;
  readonly onChange: (value: string) => void;
}

/** A field that takes effect a moment after the last key, or when it is left: what is clicked on comes after it. */
function TypedField({
  label,
  placeholder,
  class: name,
  value,
  inputRef,
  read = (typed) => typed,
  onChange,
}: TypedFieldProps) {
  const [typed, setTyped] = useState(value);
  const own = useRef<HTMLInputElement>(null);
  const field = inputRef ?? own;
  const timer = useRef(0);
  const pending = useRef<string | null>(null);
  const settle = (): void => {
    clearTimeout(timer.current);
    const wanted = pending.current;
    pending.current = null;
    if (wanted !== null) onChange(wanted);
  };
  // Changed from elsewhere, as by a link: what is being typed is not overwritten.
  useEffect(() => {
    if (document.activeElement !== field.current) setTyped(value);
  }, [value, field]);
  // Before another page is there, whose address it would change.
  useLayoutEffect(
    () => () => {
      clearTimeout(timer.current);
      // Browsers differ in whether what is taken out of the document loses the focus.
      pending.current = null;
    },
    [],
  );
  const readable = read(typed.trim());
  return (
    <input
      ref={field}
      class={name}
      type="search"
      aria-label={label}
      aria-invalid={readable === null}
      placeholder={placeholder}
      value={typed}
      onInput={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        clearTimeout(timer.current);
        pending.current = read(text.trim());
        if (pending.current !== null) timer.current = window.setTimeout(settle, TYPING_MS);
      }}
      onBlur={settle}
    />
  );
}
