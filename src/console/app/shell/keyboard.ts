/**
 * The keyboard: parts of the page bind keys while they are shown, the last shown first. Keys typed into a field are the
 * field's, except those that a binding claims `inFields` (`Escape`). Two keys after one another (`g t`) are one binding.
 */
import { signal, type Signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useServices } from '../services.ts';

export interface Binding {
  /** As `KeyboardEvent.key` names it; two names with a blank between are typed one after the other. */
  readonly keys: string;
  /** What it does, for the overview that `?` shows; absent: it is not listed. */
  readonly label?: string;
  readonly inFields?: boolean;
  /** False: not meant for this binding after all, ask the next. */
  run(event: KeyboardEvent): boolean | void;
}

export interface Keyboard {
  readonly layers: Signal<readonly Layer[]>;
  /** Returns what takes them away again. */
  bind(title: string, bindings: () => readonly Binding[]): () => void;
}

export interface Layer {
  /** Of the group in the overview. */
  readonly title: string;
  readonly bindings: () => readonly Binding[];
}

const SEQUENCE_MS = 1200;

export function createKeyboard(): Keyboard {
  const layers = signal<readonly Layer[]>([]);
  let first = { key: '', atMs: 0 };

  const find = (event: KeyboardEvent, keys: string): boolean => {
    for (const layer of layers.peek().toReversed()) {
      for (const binding of layer.bindings()) {
        if (binding.keys !== keys || (isField(event.target) && binding.inFields !== true)) continue;
        if (binding.run(event) !== false) return true;
      }
    }
    return false;
  };

  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    // An open dialog has the keyboard to itself.
    if (document.querySelector('dialog[open]') !== null) return;
    const isSecond = first.key !== '' && event.timeStamp - first.atMs < SEQUENCE_MS;
    const taken = (isSecond && find(event, `${first.key} ${event.key}`)) || find(event, event.key);
    first = taken || isField(event.target) ? { key: '', atMs: 0 } : { key: event.key, atMs: event.timeStamp };
    if (taken) event.preventDefault();
  });

  return {
    layers,
    bind: (title, bindings) => {
      const layer: Layer = { title, bindings };
      layers.value = [...layers.peek(), layer];
      return () => (layers.value = layers.peek().filter((other) => other !== layer));
    },
  };
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input:not([type=checkbox]):not([type=radio]), textarea, select'))
  );
}

/** Binds while the part is shown: from the moment it can be seen to the moment it goes, so that no key of a fast hand is lost. */
export function useKeys(title: string, bindings: readonly Binding[]): void {
  const { keyboard } = useServices();
  const latest = useRef(bindings);
  latest.current = bindings;
  // Not after the next frame, as other effects run: a key that comes before it would go to the page that was.
  useLayoutEffect(() => keyboard.bind(title, () => latest.current), [keyboard, title]);
}
