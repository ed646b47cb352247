/** Two parts beside each other with a border between that can be moved, by pointer and by arrow keys; its place is remembered. */
import { useState } from 'preact/hooks';

export interface Split {
  /** Share of the first part, 0 to 1. */
  readonly share: number;
  /** The same for a style sheet. */
  readonly css: string;
  set(share: number): void;
}

const MIN_SHARE = 0.15;
const KEY_STEP = 0.02;

export function useSplit(name: string, initial: number): Split {
  const storeName = `collector-proxy-split-${name}`;
  const [share, setShare] = useState(() => {
    const kept = Number(localStorage.getItem(storeName));
    return kept >= MIN_SHARE && kept <= 1 - MIN_SHARE ? kept : initial;
  });
  return {
    share,
    css: `${(share * 100).toFixed(2)}%`,
    set: (wanted) => {
      const next = Math.min(1 - MIN_SHARE, Math.max(MIN_SHARE, wanted));
      localStorage.setItem(storeName, String(next));
      setShare(next);
    },
  };
}

/** To stand in the positioned element that both parts fill. */
export function Splitter({ split, label }: { readonly split: Split; readonly label: string }) {
  return (
    <div
      class="splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={Math.round(split.share * 100)}
      tabIndex={0}
      style={{ left: split.css }}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowLeft' ? -KEY_STEP : event.key === 'ArrowRight' ? KEY_STEP : 0;
        if (step === 0) return;
        event.preventDefault();
        split.set(split.share + step);
      }}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const { currentTarget: handle } = event;
        const box = handle.parentElement?.getBoundingClientRect();
        if (box === undefined || !handle.hasPointerCapture(event.pointerId)) return;
        split.set((event.clientX - box.left) / box.width);
      }}
    />
  );
}
