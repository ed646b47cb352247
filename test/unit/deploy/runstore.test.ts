import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, it } from 'node:test';
import { defaultAssistantId } from '../../../src/deploy/ids.ts';
import type { JsonText } from '../../../src/deploy/store/model.ts';
import type { DeploymentStore, NewRun, RunCreation, RunEnd } from '../../../src/deploy/store/repositories.ts';
import { describeOnEachEngine } from '../../deploy-engines.ts';
import type { TestDatabase } from '../../deploy-engines.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const OWNER = 'queue-1';
const LEASE = { ownerId: OWNER, leaseUntilMs: NOW + 60_000 };
const text = (value: unknown): JsonText => JSON.stringify(value) as JsonText;

describeOnEachEngine(
  'runs in the store',
  (engine) => {
    let database: TestDatabase;
    let store: DeploymentStore;
    let threadId: string;

    before(async () => {
      database = await engine.create();
      store = await database.open();
      await store.assistants.ensureDefaults([
        {
          assistantId: defaultAssistantId('agent'),
          graphId: 'agent',
          name: 'agent',
          description: null,
          config: { tags: ['a'], configurable: { model: 'small', __pregel_x: 1 } },
          context: { user: 'nobody' },
          metadata: { created_by: 'system' },
          ifExists: 'do_nothing',
          nowMs: NOW,
        },
      ]);
    });
    after(async () => {
      await store.stop();
      await database.remove();
    });
    beforeEach(async () => {
      threadId = database.ids.next();
      await store.threads.create({ threadId, metadata: { team: 'ops' }, ifExists: 'raise', ttl: null, nowMs: NOW });
    });
    afterEach(async () => {
      const left = await store.runs.recover({ all: true, maxAttempts: 0, errorJson: text({}), nowMs: NOW });
      assert.equal(left.requeuedCount, 0);
      await store.runs.cancel({ kind: 'status', threadId: null, statuses: ['pending', 'running'] }, 'interrupt', NOW);
    });

    const request = (change: Partial<NewRun> = {}): NewRun => ({
      runId: database.ids.next(),
      assistantId: 'agent',
      threadId,
      newThreadId: database.ids.next(),
      ifThreadMissing: 'reject',
      temporary: false,
      resumable: false,
      multitask: 'enqueue',
      notBeforeMs: NOW,
      webhook: null,
      config: { configurable: { thread_id: 'forged', checkpoint_id: 'c1' } },
      context: { lang: 'fr' },
      metadata: { job: 7 },
      restJson: text({ input: { topic: 'ice' } }),
      claim: null,
      nowMs: NOW,
      ...change,
    });
    const create = async (change: Partial<NewRun> = {}): Promise<Extract<RunCreation, { kind: 'created' }>> => {
      const creation = await store.runs.create(request(change));
      assert.equal(creation.kind, 'created');
      return creation;
    };
    const ending = (runId: string, change: Partial<RunEnd> = {}): RunEnd => ({
      runId,
      threadId,
      ownerId: OWNER,
      outcome: { kind: 'success' },
      state: { valuesJson: text({ topic: 'ice' }), interruptsJson: text({}), hasNext: false },
      stateCleared: true,
      nowMs: NOW + 5,
      ...change,
    });

    it('merges assistant, thread and request, later wins, and forces what identifies the run', async () => {
      const { run } = await create();
      const kwargs = JSON.parse(run.kwargsJson) as Record<string, Record<string, unknown>>;
      assert.deepEqual(run.metadata, { created_by: 'system', team: 'ops', job: 7 });
      assert.deepEqual(kwargs['context'], { user: 'nobody', lang: 'fr' });
      assert.deepEqual(kwargs['input'], { topic: 'ice' });
      assert.deepEqual(kwargs['config'], {
        tags: ['a'],
        metadata: run.metadata,
        configurable: {
          model: 'small',
          checkpoint_id: 'c1',
          run_id: run.runId,
          thread_id: threadId,
          graph_id: 'agent',
          assistant_id: defaultAssistantId('agent'),
          user_id: null,
        },
      });
      const thread = await store.threads.get(threadId);
      assert.equal(thread?.status, 'busy');
      assert.equal(thread.metadata['graph_id'], 'agent');
    });

    it('refuses an unknown assistant and an unknown thread without leaving anything behind', async () => {
      assert.equal((await store.runs.create(request({ assistantId: 'nobody' }))).kind, 'assistant-missing');
      const missing = database.ids.next();
      assert.equal((await store.runs.create(request({ threadId: missing }))).kind, 'thread-missing');
      assert.equal(await store.threads.get(missing), null);
      assert.deepEqual(await store.runs.list(threadId, {}, { limit: 10, offset: 0 }), []);
    });

    it('makes the missing thread when asked to, bound to the graph', async () => {
      const missing = database.ids.next();
      await create({ threadId: missing, ifThreadMissing: 'create' });
      const thread = await store.threads.get(missing);
      assert.deepEqual(thread?.metadata, { job: 7, graph_id: 'agent', assistant_id: defaultAssistantId('agent') });
    });

    it('creates a run as claimed when a place is free and nothing is in the way', async () => {
      const first = await create({ claim: LEASE });
      assert.equal(first.claimed, true);
      assert.equal(first.run.status, 'running');
      assert.equal(first.run.attempt, 1);
      const second = await create({ claim: LEASE });
      assert.equal(second.claimed, false);
      assert.equal(second.run.status, 'pending');
      assert.deepEqual(await store.runs.claimOldest(LEASE, 1, NOW), { runs: [], nextDueMs: null });
      const end = await store.runs.finish(ending(first.run.runId));
      assert.ok(end.kind === 'ended' && end.morePending && end.threadStatus === 'busy');
      const [claimed] = (await store.runs.claimOldest(LEASE, 1, NOW)).runs;
      assert.equal(claimed?.runId, second.run.runId);
    });

    it('claims in order of creation, skips busy threads, and never runs two on one thread at once', async () => {
      const other = database.ids.next();
      await store.threads.create({ threadId: other, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
      const a1 = await create();
      await create();
      const b1 = await create({ threadId: other });
      const claims = await Promise.all([1, 2, 3].map(() => store.runs.claimOldest(LEASE, 1, NOW)));
      const ids = claims.flatMap((claim) => claim.runs.map((run) => run.runId));
      assert.deepEqual(ids.sort(), [a1.run.runId, b1.run.runId].sort());
    });

    it('claims as many as it is asked for, the oldest first, one a thread', async () => {
      const others = [database.ids.next(), database.ids.next()];
      for (const other of others)
        await store.threads.create({ threadId: other, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
      const created = [];
      for (const on of [threadId, threadId, ...others]) created.push((await create({ threadId: on })).run.runId);
      await create({ threadId: others[0] ?? '', notBeforeMs: NOW + 500 });
      const two = await store.runs.claimOldest(LEASE, 2, NOW);
      assert.deepEqual([two.runs.map((run) => run.runId), two.nextDueMs], [[created[0], created[2]], null]);
      const rest = await store.runs.claimOldest(LEASE, 5, NOW);
      assert.deepEqual([rest.runs.map((run) => run.runId), rest.nextDueMs], [[created[3]], NOW + 500]);
    });

    it('holds a delayed run back and says when it is due', async () => {
      const { run, claimed } = await create({ notBeforeMs: NOW + 1000, claim: LEASE });
      assert.equal(claimed, false);
      assert.deepEqual(await store.runs.claimOldest(LEASE, 1, NOW + 999), { runs: [], nextDueMs: NOW + 1000 });
      const [later] = (await store.runs.claimOldest(LEASE, 1, NOW + 1000)).runs;
      assert.equal(later?.runId, run.runId);
    });

    it('rejects while a run is in flight, also a delayed one, and leaves that one alone', async () => {
      const { run } = await create({ notBeforeMs: NOW + 1000 });
      assert.equal((await store.runs.create(request({ multitask: 'reject' }))).kind, 'conflict');
      assert.equal((await store.runs.get(run.runId))?.status, 'pending');
    });

    it('lets exactly one of many simultaneous rejecting runs through', async () => {
      const creations = await Promise.all(
        Array.from({ length: 12 }, () => store.runs.create(request({ multitask: 'reject' }))),
      );
      assert.equal(creations.filter((creation) => creation.kind === 'created').length, 1);
      assert.equal(creations.filter((creation) => creation.kind === 'conflict').length, 11);
    });

    it('interrupts what is pending at once, with its webhook, and marks what is running', async () => {
      const running = await create({ claim: LEASE });
      const pending = await create({ webhook: 'https://example.com/hook' });
      const third = await create({ multitask: 'interrupt', claim: LEASE });
      assert.deepEqual(
        third.displaced.map((ref) => ref.runId),
        [pending.run.runId],
      );
      assert.deepEqual(
        third.stopping.map(({ ref, action }) => [ref.runId, action]),
        [[running.run.runId, 'interrupt']],
      );
      assert.equal(third.claimed, false);
      assert.equal(third.deliveriesQueued, true);
      assert.equal((await store.runs.get(pending.run.runId))?.status, 'interrupted');
      const [delivery] = await store.webhooks.forRun(pending.run.runId);
      const payload = JSON.parse(delivery?.delivery.payloadJson ?? '') as Record<string, unknown>;
      assert.equal(payload['status'], 'interrupted');
      assert.equal('values' in payload, false);
      const end = await store.runs.finish(ending(running.run.runId, { outcome: { kind: 'cancelled' } }));
      assert.ok(end.kind === 'ended' && end.status === 'interrupted' && !end.rolledBack);
      const [next] = (await store.runs.claimOldest(LEASE, 1, NOW)).runs;
      assert.equal(next?.runId, third.run.runId);
    });

    it('rolls back: the running run vanishes when it stops, the pending one at once, and nobody is told', async () => {
      const running = await create({ claim: LEASE, webhook: 'https://example.com/hook' });
      const pending = await create();
      const third = await create({ multitask: 'rollback' });
      assert.equal(await store.runs.get(pending.run.runId), null);
      assert.equal((await store.runs.get(running.run.runId))?.cancelAction, 'rollback');
      // It had just finished when it was asked to vanish: it vanishes.
      const end = await store.runs.finish(ending(running.run.runId));
      assert.ok(end.kind === 'ended' && end.rolledBack && end.run === null && !end.deliveryQueued);
      assert.equal(await store.runs.get(running.run.runId), null);
      assert.deepEqual(await store.webhooks.forRun(running.run.runId), []);
      assert.equal((await store.threads.get(threadId))?.valuesJson, null);
      const [next] = (await store.runs.claimOldest(LEASE, 1, NOW)).runs;
      assert.equal(next?.runId, third.run.runId);
    });

    it('ends a run, its thread and its webhook in one step', async () => {
      const { run } = await create({ claim: LEASE, webhook: 'https://example.com/hook' });
      const state = {
        valuesJson: text({ topic: 'snow' }),
        interruptsJson: text({ t1: [{ value: 1 }] }),
        hasNext: true,
      };
      const end = await store.runs.finish(ending(run.runId, { state }));
      assert.ok(end.kind === 'ended' && end.deliveryQueued && end.threadStatus === 'interrupted');
      const thread = await store.threads.get(threadId);
      assert.equal(thread?.status, 'interrupted');
      assert.equal(thread.valuesJson, state.valuesJson);
      assert.equal(thread.stateUpdatedMs, NOW + 5);
      const [delivery] = await store.webhooks.forRun(run.runId);
      const payload = JSON.parse(delivery?.delivery.payloadJson ?? '') as Record<string, unknown>;
      assert.deepEqual(payload['values'], { topic: 'snow' });
      assert.deepEqual((payload['kwargs'] as Record<string, unknown>)['input'], { topic: 'ice' });
      assert.equal(payload['error'], null);
      assert.equal(payload['run_started_at'], '2026-05-04T09:00:00.000Z');
    });

    it('keeps the error of a failed run on run, thread and webhook', async () => {
      const { run } = await create({ claim: LEASE, webhook: 'https://example.com/hook' });
      const errorJson = text({ error: 'ValueError', message: 'bad topic' });
      await store.runs.finish(ending(run.runId, { outcome: { kind: 'error', errorJson }, state: null }));
      assert.equal((await store.threads.get(threadId))?.status, 'error');
      assert.equal((await store.threads.get(threadId))?.errorJson, errorJson);
      assert.equal((await store.runs.get(run.runId))?.errorJson, errorJson);
      const [delivery] = await store.webhooks.forRun(run.runId);
      assert.deepEqual((JSON.parse(delivery?.delivery.payloadJson ?? '') as Record<string, unknown>)['error'], {
        error: 'ValueError',
        message: 'bad topic',
      });
    });

    it('lets a temporary run vanish with its thread but still tells its webhook', async () => {
      const { run } = await create({
        threadId: null,
        temporary: true,
        claim: LEASE,
        webhook: 'https://example.com/hook',
      });
      assert.equal(
        (await store.threads.search({}, { limit: 1000, offset: 0 }, { by: 'createdMs', order: 'asc' })).rows.some(
          (thread) => thread.threadId === run.threadId,
        ),
        false,
      );
      const end = await store.runs.finish(ending(run.runId, { threadId: run.threadId }));
      assert.ok(end.kind === 'ended' && end.run === null && end.status === 'success');
      assert.equal(await store.threads.get(run.threadId), null);
      assert.equal(await store.runs.get(run.runId), null);
      const [delivery] = await store.webhooks.forRun(run.runId);
      assert.equal('values' in (JSON.parse(delivery?.delivery.payloadJson ?? '') as object), false);
    });

    it('throws away what a stale owner brings', async () => {
      const { run } = await create({ claim: LEASE });
      assert.deepEqual(await store.runs.finish(ending(run.runId, { ownerId: 'other' })), { kind: 'lost' });
      await store.threads.delete(threadId);
      assert.deepEqual(await store.runs.finish(ending(run.runId)), { kind: 'lost' });
    });

    it('gives a run back a limited number of times, then fails it', async () => {
      const { run } = await create({ claim: LEASE });
      const s = {
        maxAttempts: 3,
        countAttempt: true,
        errorJson: text({ error: 'WorkerLost', message: 'x' }),
        nowMs: NOW,
      };
      for (let attempt = 2; attempt <= 3; attempt++) {
        assert.deepEqual(await store.runs.release(run.runId, OWNER, s), { kind: 'requeued' });
        const [claimed] = (await store.runs.claimOldest(LEASE, 1, NOW)).runs;
        assert.equal(claimed?.attempt, attempt);
      }
      const last = await store.runs.release(run.runId, OWNER, s);
      assert.ok(last.kind === 'ended' && last.status === 'error' && last.threadStatus === 'error');
    });

    it('recovers only what nobody holds any more', async () => {
      const { run } = await create({ claim: LEASE });
      const s = { all: false, maxAttempts: 3, errorJson: text({}) };
      assert.equal((await store.runs.recover({ ...s, nowMs: NOW })).requeuedCount, 0);
      assert.equal((await store.runs.recover({ ...s, nowMs: LEASE.leaseUntilMs + 1 })).requeuedCount, 1);
      assert.deepEqual(await store.runs.renew(OWNER, [run.runId], NOW), { lost: [run.runId], cancelled: [] });
    });

    it('tells the owner at renewal that another process asked to cancel', async () => {
      const { run } = await create({ claim: LEASE });
      const result = await store.runs.cancel({ kind: 'ids', threadId, runIds: [run.runId] }, 'interrupt', NOW);
      assert.equal(result.stopping.length, 1);
      assert.deepEqual(await store.runs.renew(OWNER, [run.runId], NOW + 1), {
        lost: [],
        cancelled: [{ runId: run.runId, action: 'interrupt' }],
      });
    });

    it('cancels by ids only on the thread named, and says what it did not find', async () => {
      const { run } = await create();
      const elsewhere = await store.runs.cancel(
        { kind: 'ids', threadId: database.ids.next(), runIds: [run.runId] },
        'interrupt',
        NOW,
      );
      assert.deepEqual(elsewhere.missing, [run.runId]);
      assert.equal((await store.runs.get(run.runId))?.status, 'pending');
      const here = await store.runs.cancel({ kind: 'ids', threadId, runIds: [run.runId] }, 'interrupt', NOW);
      assert.equal(here.displaced.length, 1);
      assert.equal((await store.threads.get(threadId))?.status, 'idle');
      const again = await store.runs.cancel({ kind: 'ids', threadId, runIds: [run.runId] }, 'interrupt', NOW);
      assert.equal(again.ended.length, 1);
    });

    it('cancels by status, on one thread or everywhere, however many there are', async () => {
      const many = Array.from({ length: 1005 }, () => request({ threadId: null, temporary: true }));
      assert.equal((await store.runs.createBatch(many)).kind, 'created');
      await create();
      const pending = { kind: 'status', statuses: ['pending'] } as const;
      const here = await store.runs.cancel({ ...pending, threadId }, 'interrupt', NOW);
      assert.equal(here.displaced.length, 1);
      assert.equal((await store.runs.countByStatus()).pending, many.length);
      const everywhere = await store.runs.cancel({ ...pending, threadId: null }, 'interrupt', NOW);
      assert.equal(new Set(everywhere.displaced.map((ref) => ref.runId)).size, many.length);
      assert.equal((await store.runs.countByStatus()).pending, 0);
    });

    it('binds a thread to graph and assistant with its first run, also where its client has named a graph', async () => {
      await store.threads.patch(threadId, { graph_id: 'other' }, undefined, NOW);
      const { run } = await create();
      const bound = { team: 'ops', graph_id: 'agent', assistant_id: run.assistantId };
      assert.deepEqual((await store.threads.get(threadId))?.metadata, bound);
    });

    it('creates a batch whole or not at all', async () => {
      const good = request();
      const refused = await store.runs.createBatch([good, request({ assistantId: 'nobody' })]);
      assert.ok(refused.kind === 'refused' && refused.index === 1 && refused.creation.kind === 'assistant-missing');
      assert.equal(await store.runs.get(good.runId), null);
      const made = await store.runs.createBatch([good, request()]);
      assert.ok(made.kind === 'created' && made.creations.length === 2);
    });

    it('refuses to delete a run in flight', async () => {
      const { run } = await create();
      assert.equal(await store.runs.delete(threadId, run.runId), 'active');
      await store.runs.cancel({ kind: 'ids', threadId, runIds: [run.runId] }, 'interrupt', NOW);
      assert.equal(await store.runs.delete(database.ids.next(), run.runId), 'missing');
      assert.equal(await store.runs.delete(threadId, run.runId), 'deleted');
    });

    it('ends more runs at once than there are connections, with what they wrote', { timeout: 60_000 }, async () => {
      const running = await Promise.all(
        Array.from({ length: 40 }, () =>
          create({ threadId: null, newThreadId: database.ids.next(), claim: LEASE, nowMs: NOW }),
        ),
      );
      const refs = running.map(({ run }) => run);
      for (const { runId, threadId } of refs)
        await store.runs.cancel({ kind: 'ids', threadId, runIds: [runId] }, 'rollback', NOW);
      const endings = await Promise.all([
        ...refs
          .slice(0, 20)
          .map(({ runId, threadId }) =>
            store.runs.finish(
              ending(runId, { threadId, outcome: { kind: 'cancelled' }, state: null, stateCleared: false }),
            ),
          ),
        ...refs.slice(20).map(({ threadId }) => store.threads.delete(threadId)),
      ]);
      assert.deepEqual(new Set(endings.map(({ kind }) => kind)), new Set(['ended', 'deleted']));
    });

    it('leaves the events of a temporary run to their expiry, and takes those of a deleted one', async () => {
      const temporary = await create({ threadId: null, temporary: true, resumable: true, claim: LEASE });
      const lasting = await create({ resumable: true });
      const event = { seq: 0, eventId: '1-0', event: 'values', dataJson: text({}) };
      for (const { run } of [temporary, lasting]) await store.events.append(run.runId, [event], NOW + 1000);
      await store.runs.finish(ending(temporary.run.runId, { threadId: temporary.run.threadId }));
      assert.equal((await store.events.after(temporary.run.runId, -1, 10)).length, 1);
      await store.runs.cancel({ kind: 'ids', threadId, runIds: [lasting.run.runId] }, 'rollback', NOW);
      assert.equal((await store.events.after(lasting.run.runId, -1, 10)).length, 0);
      const third = await create({ resumable: true });
      await store.events.append(third.run.runId, [event], NOW + 1000);
      await store.threads.delete(threadId);
      assert.equal((await store.events.after(third.run.runId, -1, 10)).length, 0);
    });

    it('keeps the events of a resumable run for replay, in order, once each', async () => {
      const { run } = await create({ resumable: true });
      const event = (seq: number) => ({ seq, eventId: `1-${seq}`, event: 'values', dataJson: text({ seq }) });
      assert.equal(await store.events.lastSeq(run.runId), -1);
      await store.events.append(run.runId, [event(0), event(1)], NOW + 1000);
      await store.events.append(run.runId, [event(1), event(2)], NOW + 1000);
      assert.deepEqual(
        (await store.events.after(run.runId, 0, 10)).map((kept) => kept.seq),
        [1, 2],
      );
      assert.equal(await store.events.lastSeq(run.runId), 2);
      await store.events.expireAt(run.runId, NOW + 10);
      assert.equal(await store.events.deleteExpired(NOW + 10), 3);
    });
  },
  { alsoThreaded: true },
);
