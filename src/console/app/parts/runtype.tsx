/** How the types of runs and their outcomes look. */
import type { Status } from '../../../backend/api.ts';

/** Paths on a field of 16 by 16. */
const ICONS: Readonly<Record<string, string>> = {
  llm: 'M8 1.5 9.6 6.4 14.5 8 9.6 9.6 8 14.5 6.4 9.6 1.5 8 6.4 6.4Z',
  tool: 'M10.2 2.2a3.6 3.6 0 0 0-3.3 5L2.3 11.800a1.350 1.350 0 0 0 1.900 1.900L8.800 9.100a3.600 3.600 0 0 0 4.800-4.500L11.500 6.700 9.300 4.500 11.400 2.400a3.600 3.600 0 0 0-1.200-.2Z',
  retriever: 'M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.300 10.300 14 14',
  chain:
    'M6.500 9.500l3-3M7.500 4.500l1.200-1.200a2.900 2.900 0 0 1 4 4L11.500 8.500M8.500 11.500l-1.200 1.200a2.900 2.900 0 0 1-4-4L4.500 7.500',
  embedding: 'M4 4h.01M8 4h.01M12 4h.01M4 8h.01M8 8h.01M12 8h.01M4 12h.01M8 12h.01M12 12h.01',
  prompt: 'M3 4.500 6.500 8 3 11.500M8 12h5',
  parser:
    'M6 2.500C4 2.500 4.500 5 4.500 6S4 8 2.500 8C4 8 4.500 9 4.500 10S4 13.500 6 13.500M10 2.500c2 0 1.500 2.500 1.500 3.500s.5 2 2 2c-1.500 0-2 1-2 2s.5 3.500-1.500 3.500',
};

export function RunTypeIcon({ type }: { readonly type: string }) {
  const path = ICONS[type];
  return (
    <svg
      class={`type type-${path === undefined ? 'other' : type}`}
      viewBox="0 0 16 16"
      role="img"
      aria-label={type || 'run'}
    >
      <title>{type || 'run'}</title>
      {path === undefined ? <circle cx="8" cy="8" r="4.5" /> : <path d={path} />}
    </svg>
  );
}

export const STATUS_WORDS: Readonly<Record<Status, string>> = {
  success: 'Success',
  error: 'Error',
  pending: 'Running',
};

export function StatusDot({ status }: { readonly status: Status }) {
  return <span class={`dot dot-${status}`} role="img" aria-label={STATUS_WORDS[status]} title={STATUS_WORDS[status]} />;
}
