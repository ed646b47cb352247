/** One conversation with an assistant: its runs one after the other, on one thread or on none. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../api/load.ts';
import type { Deployments, JsonObject } from './api.ts';
import { begin, EMPTY, failed, finish, standing, take, type Transcript } from './transcript.ts';

export const STREAM_MODES = [
  'values',
  'updates',
  'messages-tuple',
  'custom',
  'tasks',
  'checkpoints',
  'debug',
  'events',
] as const;

export interface Choice {
  readonly assistantId: string;
  /** An id, `new`, or `none`. */
  readonly thread: string;
  readonly checkpointId: string | null;
}

export interface Options {
  readonly modes: readonly string[];
  readonly subgraphs: boolean;
  readonly stepwise: boolean;
  /** Empty: none. */
  readonly webhook: string;
}

export interface Session {
  readonly transcript: Transcript;
  /** `request`: its input or command. `messages`: shown at once, before the run says so itself. */
  readonly run: (request: JsonObject, messages: readonly JsonObject[]) => void;
  readonly cancel: () => void;
}

/** `onThread` hears of the thread that a run has made. */
export function useSession(
  deployments: Deployments,
  choice: Choice,
  options: Options,
  onThread: (threadId: string) => void,
): Session {
  const [transcript, setTranscript] = useState<Transcript>(EMPTY);
  /** The run that is shown; another one's events are not. */
  const current = useRef<Following | null>(null);
  const ownThread = useRef<string | null>(null);
  const { assistantId, thread, checkpointId } = choice;

  // With the choice itself: later it would take away a run that was begun in between.
  useLayoutEffect(() => {
    // A thread of our own making is shown already.
    if (thread === ownThread.current && checkpointId === null) return;
    const aborter = new AbortController();
    // What still runs on the thread before goes on there, unseen.
    current.current?.aborter.abort();
    current.current = null;
    setTranscript(EMPTY);
    ownThread.current = null;
    if (thread === 'new' || thread === 'none') return;
    const read =
      checkpointId === null
        ? deployments.state(thread, aborter.signal)
        : deployments.stateAt(thread, checkpointId, aborter.signal);
    read.then(
      (state) => {
        // A run that was begun meanwhile tells more.
        if (aborter.signal.aborted || current.current !== null) return;
        setTranscript(
          standing(
            state.values,
            state.tasks.flatMap(({ interrupts }) => interrupts),
          ),
        );
      },
      (error: unknown) => {
        if (!aborter.signal.aborted && current.current === null) setTranscript(failed(EMPTY, messageOf(error)));
      },
    );
    return () => aborter.abort();
  }, [deployments, assistantId, thread, checkpointId]);

  useEffect(() => () => current.current?.aborter.abort(), []);

  const follow = async (run: Following, request: JsonObject): Promise<void> => {
    if (thread === 'new') {
      const made = (await deployments.createThread()).thread_id;
      // Cancelled, or left for another thread or another page, whose address is not ours to change.
      run.aborter.signal.throwIfAborted();
      run.threadId = made;
      ownThread.current = run.threadId;
      onThread(run.threadId);
    } else if (thread !== 'none') {
      run.threadId = thread;
      ownThread.current = thread;
      if (checkpointId !== null) onThread(thread);
    }
    await deployments.stream(
      run.threadId,
      {
        assistant_id: assistantId,
        stream_mode: options.modes,
        stream_subgraphs: options.subgraphs,
        // Without a thread there is no other way to cancel it.
        ...(run.threadId === null ? { on_disconnect: 'cancel' } : {}),
        ...(options.stepwise ? { interrupt_before: '*' } : {}),
        ...(options.webhook === '' ? {} : { webhook: options.webhook }),
        ...(checkpointId === null ? {} : { checkpoint: { checkpoint_id: checkpointId } }),
        ...request,
      },
      {
        onRun: (runId) => {
          run.runId = runId;
          if (run.isUnwanted) stop(run);
        },
        onEvent: (event) => run.show((before) => take(before, event)),
      },
      run.aborter.signal,
    );
  };

  /** The run ends its stream itself, when it has stopped. Until its id is known there is nothing to stop it by. */
  const stop = (run: Following): void => {
    if (run.threadId === null || run.runId === null) return;
    run.cancelling ??= deployments.cancelRun(run.threadId, run.runId).then(
      () => {
        run.show((before) => finish(before, 'cancelled'));
        return true;
      },
      (error: unknown) => {
        // It goes on, or has come to its end before: which, its stream tells.
        run.cancelling = null;
        run.isUnwanted = false;
        run.show((before) =>
          before.phase === 'running' ? { ...before, error: `It could not be cancelled: ${messageOf(error)}` } : before,
        );
        return false;
      },
    );
  };

  return {
    transcript,
    run: (request, messages) => {
      const run: Following = {
        aborter: new AbortController(),
        show: (change) => {
          if (current.current === run) setTranscript(change);
        },
        threadId: null,
        runId: null,
        isUnwanted: false,
        cancelling: null,
      };
      current.current = run;
      run.show((before) => begin(before, messages));
      follow(run, request).then(
        async () => {
          // The stream of a run that is cancelled may end before the answer to the request that did it.
          const isCancelled = await run.cancelling;
          run.show((before) => finish(before, isCancelled === true ? 'cancelled' : 'ended'));
        },
        (error: unknown) =>
          run.show((before) =>
            run.aborter.signal.aborted ? finish(before, 'cancelled') : failed(before, messageOf(error)),
          ),
      );
    },
    cancel: () => {
      const run = current.current;
      if (run === null) return;
      // Not begun yet, or stateless: it ends with its connection. On a thread it would go on without one.
      if (run.threadId === null) return run.aborter.abort();
      run.isUnwanted = true;
      stop(run);
    },
  };
}

interface Following {
  readonly aborter: AbortController;
  /** Changes what is shown, as long as it is this run. */
  readonly show: (change: (before: Transcript) => Transcript) => void;
  /** Null until there is one, and on a stateless run. */
  threadId: string | null;
  runId: string | null;
  isUnwanted: boolean;
  /** Whether it has been cancelled; null until somebody wants that. */
  cancelling: Promise<boolean> | null;
}
