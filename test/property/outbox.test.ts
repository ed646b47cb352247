/** Delivery against a backend that does anything: no run is lost, none is counted twice, and no limit is broken. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { COUNTER_NAMES } from '../../src/core/counters.ts';
import { silentLog } from '../../src/core/log.ts';
import { createCountingDeadLetters } from '../../src/upload/deadletter.ts';
import { InfoReader } from '../../src/upload/info.ts';
import { UploadLimits } from '../../src/upload/limits.ts';
import { Outbox } from '../../src/upload/outbox.ts';
import { unfollowed } from '../../src/upload/settlements.ts';
import { createMemoryShelf } from '../../src/upload/shelf.ts';
import { CounterList } from '../unit/assemble/fakes.ts';
import {
  DELIVERED,
  FakeClock,
  RESET,
  ScriptedBackend,
  UNREACHABLE,
  answered,
  codec,
  makeBatch,
  makeTenant,
} from '../unit/upload/fakes.ts';

const TROUBLE = [RESET, UNREACHABLE, answered(401), answered(404), answered(301)].concat(
  [408, 425, 429, 499, 500, 503].map((status) => answered(status)),
  [answered(429, { retryAfterMs: 2000 }), answered(503, { retryAfterMs: 0 })],
);
const HOUR_MS = 3_600_000;

const batches = fc.array(
  fc.record({
    tenant: fc.integer({ min: 1, max: 4 }),
    runCount: fc.integer({ min: 1, max: 12 }),
    payloadBytes: fc.integer({ min: 0, max: 400 }),
    afterMs: fc.integer({ min: 0, max: 3000 }),
  }),
  { minLength: 1, maxLength: 12 },
);

test('whatever the backend answers for a while, every good run arrives and every run is accounted for', async () => {
  await fc.assert(
    fc.asyncProperty(
      batches,
      fc.array(fc.option(fc.constantFrom(...TROUBLE), { nil: null, freq: 3 }), { maxLength: 40 }),
      fc.record({ uploadConcurrency: fc.integer({ min: 1, max: 6 }), maxRetries: fc.integer({ min: 0, max: 3 }) }),
      fc.integer({ min: 300, max: 5000 }),
      async (drawn, troubles, chosen, maxBytes) => {
        const clock = new FakeClock();
        const counters = new CounterList();
        const limits = new UploadLimits({ batchSize: 100, maxBufferBytes: 1_000_000 });
        const arrived = new Map<string, number>();
        let cut: 'before' | 'after' = 'before';
        const backend = new ScriptedBackend(clock, ({ runs, tenant, batch }, count) => {
          for (const run of runs) assert.equal(run.split('-')[0], String(tenant), 'batches never mix tenants');
          const trouble = troubles[count - 1] ?? null;
          const isBad = runs.some((run) => run.endsWith('7'));
          // A reset may strike before or after the backend has taken the batch.
          cut = cut === 'before' ? 'after' : 'before';
          if (trouble !== null && !(trouble === RESET && cut === 'after' && !isBad)) return trouble;
          if (batch.plainBytes > maxBytes) return answered(413);
          if (isBad) return answered(422);
          if (runs.some((run) => arrived.has(run))) return answered(409);
          for (const run of runs) arrived.set(run, (arrived.get(run) ?? 0) + 1);
          return trouble ?? DELIVERED;
        });
        const settings = {
          retryBackoffMs: 100,
          uploadMaxBytes: 2000,
          heldBytes: 1_000_000,
          tenantCount: 10,
          ...chosen,
        };
        const outbox = new Outbox(settings, {
          backend,
          codec,
          limits,
          info: new InfoReader(backend, limits, clock, silentLog),
          shelf: createMemoryShelf(),
          settlements: unfollowed,
          deadLetters: createCountingDeadLetters(counters, clock, silentLog),
          counters,
          clock,
          log: silentLog,
          random: () => 0.7,
        });
        let sentCount = 0;
        const good = new Set<string>();
        for (const { tenant, runCount, payloadBytes, afterMs } of drawn) {
          const runs = Array.from({ length: runCount }, () => `${tenant}-${sentCount++}`);
          for (const run of runs) if (!run.endsWith('7')) good.add(run);
          outbox.accept(makeBatch(makeTenantOnce(tenant), runs, payloadBytes));
          await clock.advance(afterMs);
          assert.ok(backend.maxInFlight <= chosen.uploadConcurrency);
        }
        await clock.advance(HOUR_MS);
        assert.deepEqual(outbox.stats.runCount, 0);
        const dropped = COUNTER_NAMES.filter((name) => name.startsWith('dropped_'));
        const droppedCount = dropped.reduce((sum, name) => sum + counters.of(name), 0);
        assert.equal(counters.of('runs_delivered') + droppedCount, sentCount);
        // A run too large for this backend even alone and cut short may be given up; every other good one is there.
        const lost = [...good].filter((run) => !arrived.has(run));
        assert.ok(lost.length <= counters.of('dropped_oversize'), lost.join());
        for (const [run, times] of arrived) assert.equal(times, 1, run);
      },
    ),
    { numRuns: 150 },
  );
});

const tenants = new Map<number, ReturnType<typeof makeTenant>>();

function makeTenantOnce(number: number): ReturnType<typeof makeTenant> {
  const tenant = tenants.get(number) ?? makeTenant(number);
  tenants.set(number, tenant);
  return tenant;
}
