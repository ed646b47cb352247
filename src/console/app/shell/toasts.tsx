/** Short notices at the lower edge: what failed, what was copied. They go by themselves, errors after longer. */
import { signal, type Signal } from '@preact/signals';
import { useServices } from '../services.ts';

export interface Toast {
  readonly id: number;
  readonly kind: 'note' | 'error';
  readonly text: string;
}

export interface Toasts {
  readonly shown: Signal<readonly Toast[]>;
  note(text: string): void;
  error(text: string): void;
  dismiss(id: number): void;
}

const NOTE_MS = 2500;
const ERROR_MS = 10_000;
const MAX_COUNT = 4;

export function createToasts(): Toasts {
  const shown = signal<readonly Toast[]>([]);
  let lastId = 0;
  const dismiss = (id: number): void => {
    shown.value = shown.peek().filter((toast) => toast.id !== id);
  };
  const add = (kind: Toast['kind'], text: string): void => {
    // The same trouble again is no news.
    if (shown.peek().some((toast) => toast.text === text)) return;
    const id = ++lastId;
    shown.value = [...shown.peek(), { id, kind, text }].slice(-MAX_COUNT);
    setTimeout(() => dismiss(id), kind === 'error' ? ERROR_MS : NOTE_MS);
  };
  return { shown, note: (text) => add('note', text), error: (text) => add('error', text), dismiss };
}

export function ToastList() {
  const { toasts } = useServices();
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.shown.value.map((toast) => (
        <div key={toast.id} class={`toast toast-${toast.kind}`}>
          <span>{toast.text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => toasts.dismiss(toast.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
