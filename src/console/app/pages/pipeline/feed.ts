/** Follows the pipeline: a snapshot and the history at every connect, then a sample a second. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { PipelineHistory, PipelineSample, PipelineSnapshot } from '../../../../core/pipeline.ts';
import { messageOf } from '../../api/load.ts';
import { useServices } from '../../services.ts';
import { createTrack, type Track } from './track.ts';
import { createView, type View } from './view.ts';

export interface Feed {
  /** Null until the first figures. */
  readonly view: View | null;
  readonly track: Track;
  /** False while there is no connection: what is shown is old. */
  readonly live: boolean;
  readonly error: string | null;
}

export function useFeed(): Feed {
  const { api } = useServices();
  const track = useMemo(createTrack, []);
  const [shown, setShown] = useState<Omit<Feed, 'track'>>({ view: null, live: false, error: null });
  useEffect(() => {
    const aborter = new AbortController();
    const { signal } = aborter;
    let snapshot: PipelineSnapshot | null = null;
    let connectCount = 0;
    const show = (now: PipelineSample): void => {
      if (snapshot === null) return;
      track.add(now);
      setShown({ view: createView(snapshot, now, track), live: true, error: null });
    };
    // Anew at each connect: it may be another process, whose counters began at 0.
    const load = async (): Promise<void> => {
      snapshot = null;
      const connect = ++connectCount;
      const [found, history] = await Promise.all([
        api.get<PipelineSnapshot>('/api/pipeline', { signal }),
        api.get<PipelineHistory>('/api/pipeline/history', { signal }),
      ]);
      // Of a connection that is over: the next has asked for itself.
      if (connect !== connectCount) return;
      track.load(history);
      snapshot = found;
      show(found);
    };
    api.follow(
      '/api/pipeline/events',
      {
        onEvent: ({ event, data }) => {
          if (event === 'sample') show(JSON.parse(data) as PipelineSample);
        },
        onState: (state) => {
          if (state === 'waiting') return setShown((before) => ({ ...before, live: false }));
          load().catch((error: unknown) => {
            if (!signal.aborted) setShown((before) => ({ ...before, error: messageOf(error) }));
          });
        },
      },
      signal,
    );
    return () => aborter.abort();
  }, [api, track]);
  return { ...shown, track };
}
