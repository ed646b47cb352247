/** The overview of the keyboard, on `?`: what the shown parts have bound. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useServices } from '../services.ts';

export function Help({ onClose }: { readonly onClose: () => void }) {
  const { keyboard } = useServices();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <header>
        <h2 id="help-title">Keyboard</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      <div class="help-groups">
        {keyboard.layers.value.map(({ title, bindings }) => {
          const listed = bindings().filter(({ label }) => label !== undefined);
          return listed.length === 0 ? null : (
            <section key={title}>
              <h3>{title}</h3>
              <dl>
                {listed.map(({ keys, label }) => (
                  <div key={keys}>
                    <dt>
                      {keys.split(' ').map((key) => (
                        <kbd key={key}>{KEY_NAMES[key] ?? key}</kbd>
                      ))}
                    </dt>
                    <dd>{label}</dd>
                  </div>
                ))}
              </dl>
            </section>
          );
        })}
      </div>
    </dialog>
  );
}

const KEY_NAMES: Readonly<Record<string, string>> = {
  Enter: 'enter',
  Escape: 'esc',
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
};
