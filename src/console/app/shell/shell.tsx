/** Around every page: header, navigation, notices, keys that work everywhere. */
import { useEffect, useState } from 'preact/hooks';
import { useLoaded } from '../api/load.ts';
import { Trouble } from '../parts/states.tsx';
import { useServices } from '../services.ts';
import type { ConsoleFacts } from '../../facts.ts';
import { Help } from './help.tsx';
import { useKeys } from './keyboard.ts';
import { deferred, type DeferredPage } from './page.tsx';
import { SignIn } from './signin.tsx';
import { ToastList } from './toasts.tsx';

interface PageEntry {
  readonly code: DeferredPage;
  readonly title: string;
  /** In the navigation; others are reached from these. */
  readonly nav?: { readonly key: string };
  /** The entry of the navigation that it belongs to. */
  readonly under?: string;
}

const PAGES: Readonly<Record<string, PageEntry>> = {
  traces: { code: deferred(() => import('../pages/traces/traces.tsx')), title: 'Traces', nav: { key: 't' } },
  trace: { code: deferred(() => import('../pages/trace/trace.tsx')), title: 'Trace', under: 'traces' },
  compare: { code: deferred(() => import('../pages/compare/compare.tsx')), title: 'Compare', under: 'traces' },
  pipeline: { code: deferred(() => import('../pages/pipeline/pipeline.tsx')), title: 'Pipeline', nav: { key: 'p' } },
  deployments: {
    code: deferred(() => import('../pages/deployments/deployments.tsx')),
    title: 'Deployments',
    nav: { key: 'd' },
  },
};

export function Shell() {
  const { api, key, facts, router } = useServices();
  const [helpShown, setHelpShown] = useState(false);
  const told = useLoaded((signal) => api.get<ConsoleFacts>('/api/console', { signal }), [], [key.value.value]);
  if (told.value !== null && facts.peek() !== told.value) facts.value = told.value;

  const { segments, params } = router.place.value;
  const [name = 'traces', ...rest] = segments;
  const entry = PAGES[name];
  // On its way while the facts are asked for.
  entry?.code.preload();
  useEffect(() => {
    document.title = `${entry?.title ?? 'Not found'} · Collector Proxy`;
  }, [entry]);
  useKeys('Everywhere', [
    { keys: '?', label: 'This overview', run: () => setHelpShown(true) },
    ...Object.entries(PAGES).flatMap(([path, { title, nav }]) =>
      nav === undefined ? [] : [{ keys: `g ${nav.key}`, label: title, run: () => router.go(`/console/${path}`) }],
    ),
    {
      keys: 'Escape',
      inFields: true,
      // Out of a field, back to the page's own keys.
      run: () => {
        if (!(document.activeElement instanceof HTMLElement) || document.activeElement === document.body) return false;
        document.activeElement.blur();
        return true;
      },
    },
  ]);

  if (key.wanted.value) return <SignIn />;
  const current = entry?.under ?? name;
  const CurrentPage = entry?.code.page;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href="/console/traces">
          <Mark />
          Collector Proxy
        </a>
        <nav aria-label="Pages">
          {Object.entries(PAGES).map(([path, { title, nav }]) =>
            nav === undefined ? null : (
              <a key={path} href={`/console/${path}`} aria-current={path === current ? 'page' : undefined}>
                {title}
              </a>
            ),
          )}
        </nav>
        <span class="grow" />
        <small class="quiet">{facts.value?.version}</small>
        {key.value.value !== '' && (
          <button type="button" class="plain" onClick={() => (key.clear(), location.reload())}>
            Sign out
          </button>
        )}
        <button type="button" class="plain" aria-label="Keyboard overview" onClick={() => setHelpShown(true)}>
          <kbd>?</kbd>
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <h1 class="hidden">{entry?.title ?? 'Not found'}</h1>
        {told.error !== null && told.value === null ? (
          <Trouble message={told.error} retry={() => told.reload()} />
        ) : facts.value === null ? null : CurrentPage === undefined ? (
          <Trouble message="There is no such page." />
        ) : (
          <CurrentPage key={name} rest={rest} params={params} />
        )}
      </main>
      {helpShown && <Help onClose={() => setHelpShown(false)} />}
      <ToastList />
    </>
  );
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M7 10h13M11 16h13M15 22h7" />
    </svg>
  );
}
