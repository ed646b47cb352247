/** Puts text on the clipboard and says so. */
import type { ComponentChildren } from 'preact';
import { useServices } from '../services.ts';

export interface CopyButtonProps {
  /** Asked when it is pressed: it may be long. */
  readonly text: () => string | Promise<string>;
  /** What was copied, for the notice. */
  readonly what: string;
  readonly children: ComponentChildren;
}

export function CopyButton({ text, what, children }: CopyButtonProps) {
  const copy = useCopy();
  return (
    <button type="button" class="small" onClick={() => void copy(text, what)}>
      {children}
    </button>
  );
}

/** Never rejects: a clipboard that is not to be had is told to the visitor. */
export function useCopy(): (text: CopyButtonProps['text'], what: string) => Promise<void> {
  const { toasts } = useServices();
  return async (text, what) => {
    try {
      await writeText(await text());
      toasts.note(`${what} copied`);
    } catch (error) {
      toasts.error(`${what} could not be copied: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
}

/** The clipboard is there on HTTPS and on this machine only; elsewhere a selection does it. */
async function writeText(text: string): Promise<void> {
  if (isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (!done) throw new Error('this browser does not let pages copy without HTTPS');
}
