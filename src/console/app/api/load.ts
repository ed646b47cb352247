/** Reading something for a part of the page: its value, its failure, and whether it is on its way. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<T> {
  /** Of the last success; kept while it is read again. */
  readonly value: T | null;
  readonly error: string | null;
  readonly loading: boolean;
  reload(): void;
}

/** Reads at once, whenever `inputs` change, and on `reload`; what is overtaken is aborted and forgotten. */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: string | null; loading: boolean }>({
    value: null,
    error: null,
    loading: true,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const aborter = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    latest.current(aborter.signal).then(
      (value) => {
        if (!aborter.signal.aborted) setState({ value, error: null, loading: false });
      },
      (error: unknown) => {
        if (aborter.signal.aborted) return;
        setState((before) => ({ ...before, error: messageOf(error), loading: false }));
      },
    );
    return () => aborter.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
