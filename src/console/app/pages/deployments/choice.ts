/** A list that is walked with `j` and `k` and opened with `enter`. */
import { useEffect, useRef } from 'preact/hooks';
import { useKeys, type Binding } from '../../shell/keyboard.ts';

/**
 * `ids` in order; `onOpen` with the one that the keyboard has come to. The list's element, given by the returned reference,
 * holds one link for each, with the id as `data-id`.
 */
export function useChoice(
  title: string,
  ids: readonly string[],
  current: string | null,
  onOpen: (id: string) => void,
  more: readonly Binding[] = [],
) {
  const list = useRef<HTMLUListElement>(null);
  const step = (by: number): void => {
    const at = current === null ? -1 : ids.indexOf(current);
    const id = ids[Math.min(ids.length - 1, Math.max(0, at + by))];
    if (id !== undefined) onOpen(id);
  };
  useKeys(title, [
    { keys: 'j', label: 'Next', run: () => step(1) },
    { keys: 'k', label: 'Before', run: () => step(-1) },
    ...more,
  ]);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  return list;
}
