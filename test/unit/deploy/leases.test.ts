import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { it } from 'node:test';
import { silentLog } from '../../../src/core/log.ts';
import { defaultAssistantId } from '../../../src/deploy/ids.ts';
import { createLeases } from '../../../src/deploy/leases.ts';
import type { JsonText } from '../../../src/deploy/store/model.ts';
import type { DeploymentStore } from '../../../src/deploy/store/repositories.ts';
import { describeOnEachEngine, type TestDatabase } from '../../deploy-engines.ts';
import { SteppedClock } from '../../steppedclock.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const LEASE_MS = 60;

describeOnEachEngine('leases that have all passed at once', (engine) => {
  it('are renewed by who holds them before it looks for lost runs, and those of others are given back', async () => {
    const database = await engine.create();
    const store = await database.open();
    const clock = new SteppedClock(NOW);
    const sweeps = new EventEmitter();
    await store.assistants.ensureDefaults([
      {
        assistantId: defaultAssistantId('agent'),
        graphId: 'agent',
        name: 'agent',
        description: null,
        config: {},
        context: {},
        metadata: {},
        ifExists: 'do_nothing',
        nowMs: NOW,
      },
    ]);
    const mine = await createRun(database, store, 'here');
    const others = await createRun(database, store, 'elsewhere');
    const leases = createLeases({
      runs: store.runs,
      clock,
      log: silentLog,
      ownerId: 'here',
      leaseMs: LEASE_MS,
      maxAttempts: 3,
      held: () => [mine],
      onLost: (runId) => assert.fail(`lost ${runId}`),
      onCancelled: () => undefined,
      onRecovered: () => sweeps.emit('recovered'),
    });
    try {
      await leases.start(false);
      assert.equal((await store.runs.get(others))?.status, 'running');
      const recovered = once(sweeps, 'recovered');
      // As after a suspended machine: the next to run is the sweep, not the renewal.
      clock.advance(3_600_000);
      await recovered;
      assert.equal((await store.runs.get(others))?.status, 'pending');
      const held = await store.runs.get(mine);
      assert.equal(held?.status, 'running');
      assert.equal(held?.ownerId, 'here');
    } finally {
      leases.stop();
      await store.stop();
      await database.remove();
    }
  });
});

/** The id of a new run that executes at `ownerId`, on a thread of its own. */
async function createRun(database: TestDatabase, store: DeploymentStore, ownerId: string): Promise<string> {
  const threadId = database.ids.next();
  const creation = await store.runs.create({
    runId: database.ids.next(),
    assistantId: 'agent',
    threadId,
    newThreadId: threadId,
    ifThreadMissing: 'create',
    temporary: false,
    resumable: false,
    multitask: 'enqueue',
    notBeforeMs: NOW,
    webhook: null,
    config: {},
    context: {},
    metadata: {},
    restJson: '{}' as JsonText,
    claim: { ownerId, leaseUntilMs: NOW + LEASE_MS },
    nowMs: NOW,
  });
  assert.ok(creation.kind === 'created' && creation.claimed);
  return creation.run.runId;
}
