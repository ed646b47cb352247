/**
 * The graph worker's side of the port. In: {@link ToWorker}. Out: batches of {@link FromWorker}, one post per turn of the event
 * loop. It owns the runs that execute in this thread. It never refuses: the pool counts what it gives. On `close` it leaves the
 * port, and the thread ends with its last handle.
 */
import { answerCall, CallRefused } from './calls.ts';
import type { EventGate } from './eventgate.ts';
import { execute } from './execute.ts';
import type { Loaded, LoadedGraph } from './load.ts';
import type { AbortReason, AttemptEnd, FromWorker, GraphCall, RunOrder, ToWorker, TraceTarget } from './protocol.ts';
import { render, renderError } from './render.ts';
import type { RunWrites } from './runwrites.ts';
import { createTraceSender } from './trace.ts';

export interface HostPort {
  postMessage(messages: FromWorker[]): void;
  on(event: 'message', listener: (message: ToWorker) => void): unknown;
  close(): void;
}

export interface HostSettings {
  port: HostPort;
  loaded: Loaded;
  beat: Int32Array;
  beatIntervalMs: number;
  gate: EventGate;
  writes: RunWrites;
  /** Where runs report themselves; null when tracing is off. */
  trace: TraceTarget | null;
  /** Closes what the graphs were given. */
  close(): Promise<void>;
}

interface Running {
  controller: AbortController;
  listening: boolean;
  /** Those who wait until its events are on record, by ticket. */
  settling: Map<number, () => void>;
}

export function startHost(settings: HostSettings): void {
  const { port, loaded, beat, gate, writes } = settings;
  const running = new Map<number, Running>();
  let outbox: FromWorker[] = [];
  let ticketCount = 0;

  const flush = (): void => {
    const messages = outbox;
    outbox = [];
    port.postMessage(messages);
  };
  const send = (message: FromWorker): void => {
    if (outbox.push(message) === 1) setImmediate(flush);
  };

  const traces =
    settings.trace === null
      ? null
      : createTraceSender(settings.trace, (runCount, reason) => send({ kind: 'untraced', runCount, reason }));

  const graph = (graphId: string): LoadedGraph | undefined =>
    loaded.kind === 'loaded' ? loaded.graphs.get(graphId) : undefined;

  const settle = (key: number, state: Running): Promise<void> =>
    new Promise((resolve) => {
      const ticket = ++ticketCount;
      state.settling.set(ticket, resolve);
      send({ kind: 'settle', key, ticket });
    });

  const run = async (order: RunOrder): Promise<void> => {
    const state: Running = { controller: new AbortController(), listening: order.listening, settling: new Map() };
    running.set(order.key, state);
    writes.open(order.runId);
    if (order.resumable) gate.open(order.runId, () => settle(order.key, state));
    const found = graph(order.graphId);
    let end: AttemptEnd;
    try {
      end =
        found === undefined
          ? {
              kind: 'error',
              errorJson: renderError(new Error(`graph "${order.graphId}" is not configured`)),
              state: null,
            }
          : await execute({
              order,
              loaded: found,
              signal: state.controller.signal,
              writesEnded: () => writes.close(order.runId),
              listening: () => state.listening,
              emit: (event, dataJson) => {
                if (state.listening) send({ kind: 'event', key: order.key, event, dataJson });
              },
              callbacks: traces === null ? [] : [traces.tracer(order)],
            });
    } catch (error) {
      // Reading the state back failed after the graph itself had ended: the run cannot be called a success.
      end = { kind: 'error', errorJson: renderError(error), state: null };
    }
    await writes.close(order.runId);
    const stateCleared = order.temporary && found !== undefined && (await cleared(found, order.threadId));
    running.delete(order.key);
    gate.close(order.runId);
    for (const resolve of state.settling.values()) resolve();
    send({ kind: 'ended', key: order.key, end, stateCleared });
  };

  /** When it fails here the main thread does it. */
  const cleared = (found: LoadedGraph, threadId: string): Promise<boolean> =>
    found.clear(threadId).then(
      () => true,
      () => false,
    );

  const answer = async (key: number, call: GraphCall): Promise<void> => {
    const found = graph(call.graphId);
    if (found === undefined) {
      send({ kind: 'refusal', key, code: 'graph-missing', message: `graph "${call.graphId}" is not configured` });
      return;
    }
    try {
      send({ kind: 'answer', key, json: render(await answerCall(found, call)) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      send({ kind: 'refusal', key, code: error instanceof CallRefused ? error.code : 'failed', message });
    }
  };

  const close = async (): Promise<void> => {
    try {
      await traces?.close();
      await settings.close();
    } finally {
      port.close();
    }
  };

  const beating = setInterval(() => Atomics.add(beat, 0, 1), settings.beatIntervalMs);

  port.on('message', (message) => {
    switch (message.kind) {
      case 'run':
        return void run(message.order);
      case 'call':
        return void answer(message.key, message.call);
      case 'abort':
        return running.get(message.key)?.controller.abort(message.reason satisfies AbortReason);
      case 'listen': {
        const state = running.get(message.key);
        if (state !== undefined) state.listening = true;
        return;
      }
      case 'settled': {
        const state = running.get(message.key);
        state?.settling.get(message.ticket)?.();
        state?.settling.delete(message.ticket);
        return;
      }
      case 'close':
        clearInterval(beating);
        return void close();
    }
  });
  send(loaded.kind === 'loaded' ? { kind: 'ready' } : { kind: 'unloadable', failures: loaded.failures });
}
