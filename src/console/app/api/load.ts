/** Reading something for a part of the page: its value, its failure, and whether it is on its way. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<T> {
  /** Of the last success; kept while it is read again, null while that of another subject is on its way. */
  readonly value: T | null;
  readonly error: string | null;
  readonly loading: boolean;
  reload(): void;
}

interface State<T> {
  /** Whose value, or failure, it is. */
  readonly subject: readonly unknown[];
  readonly value: T | null;
  readonly error: string | null;
  readonly loading: boolean;
}

/**
 * Reads at once, whenever `subject` or `occasions` change, and on `reload`; what is overtaken is aborted and forgotten.
 * `subject`: what is read, so that nothing of one is ever shown as another's. `occasions`: when the same is read again.
 */
export function useLoaded<T>(
  read: (signal: AbortSignal) => Promise<T>,
  subject: readonly unknown[],
  occasions: readonly unknown[] = [],
): Loaded<T> {
  const unread: State<T> = { subject, value: null, error: null, loading: true };
  const [state, setState] = useState(unread);
  const [round, setRound] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const aborter = new AbortController();
    setState((before) => (isSame(before.subject, subject) ? { ...before, loading: true } : unread));
    latest.current(aborter.signal).then(
      (value) => {
        if (!aborter.signal.aborted) setState({ subject, value, error: null, loading: false });
      },
      (error: unknown) => {
        if (aborter.signal.aborted) return;
        setState((before) => ({ ...before, error: messageOf(error), loading: false }));
      },
    );
    return () => aborter.abort();
  }, [...subject, ...occasions, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  // Effects run after the frame: until then the state is still that of the subject before.
  const { value, error, loading } = isSame(state.subject, subject) ? state : unread;
  return { value, error, loading, reload };
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((each, index) => Object.is(each, other[index]));
}

/** Whether the part is still shown: an answer that comes later must not change the address of another page. */
export function useShown(): () => boolean {
  const shown = useRef(true);
  useLayoutEffect(() => () => (shown.current = false), []);
  return () => shown.current;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
