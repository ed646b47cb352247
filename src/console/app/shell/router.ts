/**
 * Which page is shown: the document's path below `/console`, and its query. Links are ordinary `<a href>`; a click on one of
 * ours changes the path without loading the document again.
 */
import { signal, type Signal } from '@preact/signals';

export interface Place {
  /** Unescaped segments after `/console/`: `['trace', '0af7…']`. `/` is `['traces']`. */
  readonly segments: readonly string[];
  readonly params: URLSearchParams;
}

export interface Router {
  readonly place: Signal<Place>;
  go(href: string, options?: { readonly replace?: boolean }): void;
  /** Changes parameters of the place, null removing one, without a new entry in the history. */
  setParams(changes: Readonly<Record<string, string | readonly string[] | null>>): void;
}

const PREFIX = '/console/';

export function createRouter(): Router {
  const place = signal(readPlace());
  const go: Router['go'] = (href, { replace = false } = {}) => {
    if (replace) history.replaceState(null, '', href);
    else history.pushState(null, '', href);
    place.value = readPlace();
  };
  addEventListener('popstate', () => (place.value = readPlace()));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const href = link?.getAttribute('href') ?? '';
    if (link?.target !== '' || !(href === '/' || href.startsWith(PREFIX))) return;
    event.preventDefault();
    go(href);
  });
  return {
    place,
    go,
    setParams: (changes) => {
      const params = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes)) {
        params.delete(name);
        for (const each of typeof value === 'string' ? [value] : (value ?? []))
          if (each !== '') params.append(name, each);
      }
      const query = params.toString();
      go(`${location.pathname}${query === '' ? '' : `?${query}`}`, { replace: true });
    },
  };
}

function readPlace(): Place {
  const path = location.pathname;
  const segments = path.startsWith(PREFIX)
    ? path
        .slice(PREFIX.length)
        .split('/')
        .filter((segment) => segment !== '')
        .map(unescaped)
    : [];
  return { segments: segments.length === 0 ? ['traces'] : segments, params: new URLSearchParams(location.search) };
}

/** A broken escape is shown as it stands; no page has that name. */
function unescaped(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
