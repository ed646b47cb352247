/** What stands in the place of content: nothing here yet, something went wrong, a moment please. */
import type { ComponentChildren } from 'preact';

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Trouble({ message, retry }: { readonly message: string; readonly retry?: () => void }) {
  return (
    <div class="empty" role="alert">
      <h2>That did not work</h2>
      <p>{message}</p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
