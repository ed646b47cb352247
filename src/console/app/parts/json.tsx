/** Any JSON as a tree that opens and closes. What is long is shown in part, with a way to the rest; all of it is text, never markup. */
import { useState } from 'preact/hooks';
import { ExactNumber } from './exactjson.ts';

export interface JsonProps {
  readonly value: unknown;
  /** Levels that are open at first. */
  readonly openDepth?: number;
}

const SHOWN_COUNT = 100;
const SHOWN_LENGTH = 2000;

export function Json({ value, openDepth = 2 }: JsonProps) {
  return (
    <div class="json">
      <Value value={value} name={null} depth={0} openDepth={openDepth} />
    </div>
  );
}

interface ValueProps {
  readonly value: unknown;
  /** Null: the top, or an item that its position names. */
  readonly name: string | null;
  readonly depth: number;
  readonly openDepth: number;
}

function Value({ value, name, depth, openDepth }: ValueProps) {
  const entries = entriesOf(value);
  const [open, setOpen] = useState(depth < openDepth);
  const [shownCount, setShownCount] = useState(SHOWN_COUNT);
  if (entries === null || entries.length === 0) {
    return (
      <div class="json-line">
        <Name name={name} />
        {entries === null ? (
          <Leaf value={value} />
        ) : (
          <span class="json-mark">{Array.isArray(value) ? '[]' : '{}'}</span>
        )}
      </div>
    );
  }
  const [opening, closing] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  return (
    <div class="json-node">
      <button type="button" class="json-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Caret open={open} />
        <Name name={name} />
        <span class="json-mark">
          {opening}
          {open ? '' : `… ${closing}`}
        </span>
        <span class="json-count">{entries.length}</span>
      </button>
      {open && (
        <div class="json-children">
          {entries.slice(0, shownCount).map(([key, child]) => (
            <Value key={key} value={child} name={key} depth={depth + 1} openDepth={openDepth} />
          ))}
          {entries.length > shownCount && (
            <button type="button" class="link" onClick={() => setShownCount(shownCount + 10 * SHOWN_COUNT)}>
              {entries.length - shownCount} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Name({ name }: { readonly name: string | null }) {
  return name === null ? null : <span class="json-name">{name}: </span>;
}

function Leaf({ value }: { readonly value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== 'string') {
    const kind = value === null ? 'null' : value instanceof ExactNumber ? 'number' : typeof value;
    return <span class={`json-${kind}`}>{String(value)}</span>;
  }
  const cut = !whole && value.length > SHOWN_LENGTH;
  return (
    <span class="json-string">
      {cut ? value.slice(0, SHOWN_LENGTH) : value}
      {cut && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          … {value.length - SHOWN_LENGTH} more characters
        </button>
      )}
    </span>
  );
}

export function Caret({ open }: { readonly open: boolean }) {
  return (
    <svg class={open ? 'caret caret-open' : 'caret'} viewBox="0 0 16 16" aria-hidden="true">
      <path d="M6 4l4 4-4 4" />
    </svg>
  );
}

function entriesOf(value: unknown): [string, unknown][] | null {
  if (Array.isArray(value)) return value.map((item, index) => [String(index), item as unknown]);
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return null;
  return Object.entries(value);
}
