/** A thread that runs users' graphs: wires what it was given and starts the host. */
import { parentPort, workerData } from 'node:worker_threads';
import type { SerializerProtocol } from '@langchain/langgraph-checkpoint';
import { Fault } from '../src/core/outcome.ts';
import { openGraphState } from '../src/deploy/checkpoint/graphstate.ts';
import { createEventGate } from '../src/deploy/graph/eventgate.ts';
import { startHost } from '../src/deploy/graph/host.ts';
import { loadGraphs, type GraphSaver } from '../src/deploy/graph/load.ts';
import type { GraphWorkerData } from '../src/deploy/graph/protocol.ts';
import { createRunWrites } from '../src/deploy/graph/runwrites.ts';
import { createSaverFailures } from '../src/deploy/graph/saverfailures.ts';
import type { StateLocation } from '../src/deploy/store/location.ts';

if (parentPort === null) throw new Fault('workers/graph.ts is a worker');
const { graphs, folder, location, trace, beat, beatIntervalMs } = workerData as GraphWorkerData<StateLocation>;

const writes = createRunWrites();
const savers = new Map<SerializerProtocol['constructor'], GraphSaver & { close(): Promise<void> }>();
const failures = createSaverFailures();
const gate = createEventGate();
const state = await openGraphState(location, { beforeWrite: (runId) => gate.passed(runId) });

const loaded = await loadGraphs({
  graphs,
  folder,
  store: state.items,
  saverFor: (serde) => {
    // One copy of the library, one class of serializer, one saver.
    const saver = savers.get(serde.constructor) ?? failures.watch(writes.watch(state.saver(serde)));
    savers.set(serde.constructor, saver);
    return Promise.resolve(saver);
  },
});

process.on('unhandledRejection', (reason) => {
  // The library reports it when the run ends. Anything else is user code's, and this thread cannot be trusted any more.
  if (!failures.includes(reason)) throw reason;
});

startHost({
  port: parentPort,
  loaded,
  beat: new Int32Array(beat),
  beatIntervalMs,
  gate,
  writes,
  trace,
  close: async () => {
    for (const saver of savers.values()) await saver.close();
    await state.close();
  },
});
