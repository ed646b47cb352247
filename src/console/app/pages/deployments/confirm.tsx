/** Asks before something is gone for good. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

export interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  readonly children: ComponentChildren;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
}

export function Confirm({ title, action, children, onConfirm, onCancel }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm-title" onClose={onCancel}>
      <h2 id="confirm-title">{title}</h2>
      <div class="confirm-words">{children}</div>
      <div class="confirm-buttons">
        <button type="button" autofocus onClick={onCancel}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          {action}
        </button>
      </div>
    </dialog>
  );
}
