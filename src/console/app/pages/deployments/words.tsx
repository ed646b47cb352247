/** Small words of this page: states as badges, ids, times to come and gone. */
import { duration, time, wholeTime } from '../../parts/format.ts';
import type { RunStatus, ThreadStatus } from './api.ts';

const TONES: Readonly<Record<RunStatus | ThreadStatus, string>> = {
  idle: '',
  pending: 'badge-accent',
  running: 'badge-accent',
  busy: 'badge-accent',
  success: 'badge-good',
  interrupted: 'badge-warn',
  timeout: 'badge-bad',
  error: 'badge-bad',
};

export function StatusBadge({ status }: { readonly status: RunStatus | ThreadStatus }) {
  return <span class={`badge ${TONES[status] ?? ''}`}>{status}</span>;
}

/** Both ends of an id: ids of one minute begin alike. */
export function shortId(id: string): string {
  return id.length <= 13 ? id : `${id.slice(0, 4)}…${id.slice(-6)}`;
}

export function Time({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={wholeTime(at)}>
      {time(at)}
    </time>
  );
}

/** `in 3 m 20 s`; what should have been is `due`. */
export function inTime(at: string, nowMs: number): string {
  const leftMs = Math.round((Date.parse(at) - nowMs) / 1000) * 1000;
  if (leftMs <= 0) return 'due';
  const days = Math.floor(leftMs / 86_400_000);
  return days > 1 ? `in ${days} days` : `in ${duration(leftMs)}`;
}
