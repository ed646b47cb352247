/** A page whose code is loaded when it is first shown. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../api/load.ts';
import { Trouble } from '../parts/states.tsx';

export interface PageProps {
  /** What follows the page's name in the path. */
  readonly rest: readonly string[];
  readonly params: URLSearchParams;
}

export type Page = ComponentType<PageProps>;

export interface DeferredPage {
  readonly page: Page;
  /** Fetches the code ahead of its first showing, which tells of a failure. */
  preload(): void;
}

export function deferred(fetchCode: () => Promise<{ default: Page }>): DeferredPage {
  let loaded: Page | null = null;
  let loading: Promise<{ default: Page }> | null = null;
  const load = (): Promise<{ default: Page }> => {
    loading ??= fetchCode().catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  };
  const page: Page = function Deferred(props): JSX.Element | null {
    const [, setReady] = useState(loaded !== null);
    const [error, setError] = useState<string | null>(null);
    useEffect(() => {
      // Since it was drawn, as by one that went before its code was there.
      if (loaded !== null) return setReady(true);
      load().then(
        (module) => {
          loaded = module.default;
          setReady(true);
        },
        (reason: unknown) => setError(messageOf(reason)),
      );
    }, []);
    if (loaded !== null) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    return error === null ? null : (
      <Trouble message={`This page could not be loaded: ${error}`} retry={() => location.reload()} />
    );
  };
  return { page, preload: () => void load().catch(() => undefined) };
}
