/** The thread of a shipper: one shard's records in, uploads out. Wiring only; the parts are in src/assemble and src/upload. */
import { parentPort, workerData } from 'node:worker_threads';
import { Assembler } from '../src/assemble/assembler.ts';
import { openCounterTable } from '../src/core/counters.ts';
import { systemClock } from '../src/core/lifecycle.ts';
import { relayLog } from '../src/core/log.ts';
import { Fault } from '../src/core/outcome.ts';
import { MINUTE_MS } from '../src/core/units.ts';
import { openShardReader } from '../src/ring/reader.ts';
import { Batcher } from '../src/upload/batcher.ts';
import { openBackend } from '../src/upload/client.ts';
import { createCodec } from '../src/upload/compress.ts';
import { createCountingDeadLetters } from '../src/upload/deadletter.ts';
import { openGauges } from '../src/upload/gauges.ts';
import { Hand } from '../src/upload/hand.ts';
import { InfoReader } from '../src/upload/info.ts';
import { UploadLimits } from '../src/upload/limits.ts';
import type { FromShipper, ShipWorkerData, ToShipper } from '../src/upload/message.ts';
import { Outbox } from '../src/upload/outbox.ts';
import { createMemoryShelf } from '../src/upload/shelf.ts';
import { openDeadLetters } from '../src/upload/spool/deadletters.ts';
import { deadLetterSettings, spoolSettings } from '../src/upload/spool/settings.ts';
import { Spool } from '../src/upload/spool/spool.ts';
import { createSettlements } from '../src/upload/settlements.ts';
import { Shipper } from '../src/upload/shipper.ts';

if (parentPort === null) throw new Fault('workers/ship.ts runs as a worker thread only');
const port = parentPort;
/** For so long every run travels alone, after a thread died of a batch. */
const ALONE_MS = MINUTE_MS;
const tell = (message: FromShipper): void => port.postMessage(message);

const {
  shard,
  rings,
  counters: shared,
  counterRow,
  gauges,
  spoolReady,
  settings,
  hand: sharedHand,
  poison,
} = workerData as ShipWorkerData;
const clock = systemClock;
const log = relayLog(tell, { shard });
const counters = openCounterTable(shared).row(counterRow);
const codec = createCodec(settings.zstdLevel);
const limits = new UploadLimits(settings);
const backend = openBackend(settings);
const info = new InfoReader(backend, limits, clock, log);
const settlements = createSettlements((pairs) => tell({ kind: 'settled', pairs }));
const openedGauges = openGauges(gauges);
const hand = new Hand(sharedHand);
const parts = { settlements, counters, gauges: openedGauges, clock, log };
const spool = settings.spool === null ? null : new Spool(spoolSettings(settings.spool, shard), parts);
const counting = createCountingDeadLetters(counters, clock, log);
const outbox = new Outbox(settings, {
  backend,
  codec,
  limits,
  info,
  shelf: spool ?? createMemoryShelf(),
  deadLetters:
    settings.spool === null ? counting : openDeadLetters(deadLetterSettings(settings.spool, shard), counting, parts),
  counters,
  clock,
  log,
  random: Math.random,
  settlements,
  hand,
  poison,
  onChange: () => shipper.report(),
});
const batcher = new Batcher(settings, limits, codec, (batch) => outbox.accept(batch), counters, clock);
const shipper = new Shipper({
  reader: openShardReader(rings, shard),
  assembler: new Assembler(settings, batcher, counters, settlements, hand),
  batcher,
  outbox,
  gauges: openedGauges,
  counters,
  clock,
  log,
  hand,
  poison,
});

port.on('message', (message: ToShipper) => {
  switch (message.kind) {
    case 'oversize':
      shipper.takeOversize(message.record);
      return;
    case 'spool-ready':
      void spool?.open();
      return;
    case 'drain':
      if (shipper.draining) shipper.end();
      else void drain(message.deadlineMs);
      return;
  }
});

async function drain(deadlineMs: number): Promise<void> {
  const undelivered = await shipper.drain(deadlineMs);
  await backend.close();
  settlements.flush();
  tell({ kind: 'drained', undelivered });
  port.close();
}

if (poison.oneRunEach) {
  limits.oneRunEach = true;
  setTimeout(() => (limits.oneRunEach = false), ALONE_MS).unref();
}
if (spoolReady) void spool?.open();
info.refresh();
log.debug({ zstd: codec.implementation }, 'shipper is ready');
tell({ kind: 'ready' });
await shipper.run();
