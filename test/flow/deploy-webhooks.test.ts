import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, afterEach, before, beforeEach, it } from 'node:test';
import { uncounted } from '../../src/core/counters.ts';
import { silentLog } from '../../src/core/log.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/core/units.ts';
import { defaultAssistantId } from '../../src/deploy/ids.ts';
import type { JsonText } from '../../src/deploy/store/model.ts';
import type { DeploymentStore } from '../../src/deploy/store/repositories.ts';
import { openWebhooks } from '../../src/deploy/webhooks/open.ts';
import type { Webhooks, WebhooksSettings } from '../../src/deploy/webhooks/open.ts';
import { signingKey } from '../../src/deploy/webhooks/sign.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import type { TestDatabase } from '../deploy-engines.ts';
import { SteppedClock } from '../steppedclock.ts';
import { startReceiver } from '../webhook-receiver.ts';
import type { WebhookReceiver } from '../webhook-receiver.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

describeOnEachEngine(
  'webhook deliveries',
  (engine) => {
    let database: TestDatabase;
    let store: DeploymentStore;
    let receiver: WebhookReceiver;
    let clock: SteppedClock;
    let webhooks: Webhooks;
    const runIds: string[] = [];
    const counted: string[] = [];

    before(async () => {
      database = await engine.create();
      store = await database.open();
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
    });
    after(async () => {
      await store.stop();
      await database.remove();
    });
    beforeEach(async () => {
      receiver = await startReceiver();
      clock = new SteppedClock(NOW);
      counted.length = 0;
    });
    afterEach(async () => {
      await webhooks.sender.stop(0);
      await receiver.close();
      const over = { number: 99, startedMs: NOW, durationMs: 0, statusCode: null, error: 'the test is over' };
      for (const runId of runIds.splice(0)) {
        for (const { delivery } of await store.webhooks.forRun(runId)) {
          await store.webhooks.recordAttempt(delivery.deliveryId, over, { status: 'failed', nextAttemptMs: NOW });
        }
      }
    });

    const open = (change: Partial<WebhooksSettings> = {}): void => {
      webhooks = openWebhooks({
        disabled: false,
        allowPrivate: true,
        requireHttps: false,
        allowedDomains: [],
        allowedPorts: [],
        maxUrlLength: 2000,
        webhooks: store.webhooks,
        headers: {},
        keys: [],
        maxAttempts: 4,
        counters: { ...uncounted, add: (name) => counted.push(name) },
        backoffMs: SECOND_MS,
        clock,
        log: silentLog,
        random: () => 1,
        ...change,
      });
      webhooks.sender.start();
    };

    /** A run that ends at once, its webhook with it. */
    const endRun = async (url: string): Promise<string> => {
      const ownerId = 'test';
      const creation = await store.runs.create({
        runId: database.ids.next(),
        assistantId: 'agent',
        threadId: null,
        newThreadId: database.ids.next(),
        ifThreadMissing: 'reject',
        temporary: false,
        resumable: false,
        multitask: 'enqueue',
        notBeforeMs: NOW,
        webhook: url,
        config: {},
        context: {},
        metadata: { team: 'ops' },
        restJson: '{"input":{"topic":"ice"}}' as JsonText,
        claim: { ownerId, leaseUntilMs: NOW + MINUTE_MS },
        nowMs: clock.nowMs(),
      });
      assert.ok(creation.kind === 'created');
      const { runId, threadId } = creation.run;
      await store.runs.finish({
        runId,
        threadId,
        ownerId,
        outcome: { kind: 'success' },
        state: { valuesJson: '{"topic":"ice"}' as JsonText, interruptsJson: null, hasNext: false },
        stateCleared: true,
        nowMs: clock.nowMs(),
      });
      runIds.push(runId);
      webhooks.sender.wake();
      return runId;
    };
    /** Waits until the sender has recorded what became of the attempt. */
    const recorded = async (runId: string, attemptCount: number) => {
      for (;;) {
        const [entry] = await store.webhooks.forRun(runId);
        if (entry !== undefined && entry.attempts.length >= attemptCount) return entry;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    /** Waits until so many events are counted: an attempt is counted after it is on record. */
    const counts = async (wanted: number): Promise<string[]> => {
      while (counted.length < wanted) await new Promise((resolve) => setImmediate(resolve));
      return counted.toSorted();
    };
    /** Waits until the sender sleeps until `ms` from now. */
    const sleepsFor = async (ms: number): Promise<void> => {
      while (clock.nextMs !== ms) await new Promise((resolve) => setImmediate(resolve));
    };

    it('carry the run, its state and its times as JSON', async () => {
      open({ headers: { authorization: 'Bearer token' } });
      const runId = await endRun(`${receiver.url}/done?token=s3cret`);
      await receiver.count(1);
      const [hook] = receiver.received;
      assert.equal(hook?.path, '/done?token=s3cret');
      assert.equal(hook.headers['content-type'], 'application/json');
      assert.equal(hook.headers['authorization'], 'Bearer token');
      const { kwargs, ...rest } = hook.json;
      assert.deepEqual((kwargs as Record<string, unknown>)['input'], { topic: 'ice' });
      assert.deepEqual(rest, {
        run_id: runId,
        thread_id: rest['thread_id'],
        assistant_id: defaultAssistantId('agent'),
        status: 'success',
        multitask_strategy: 'enqueue',
        created_at: '2026-05-04T09:00:00.000Z',
        updated_at: '2026-05-04T09:00:00.000Z',
        run_started_at: '2026-05-04T09:00:00.000Z',
        run_ended_at: '2026-05-04T09:00:00.000Z',
        metadata: { team: 'ops' },
        values: { topic: 'ice' },
        error: null,
        webhook_sent_at: '2026-05-04T09:00:00.000Z',
      });
      const { delivery, attempts } = await recorded(runId, 1);
      assert.equal(delivery.status, 'delivered');
      assert.deepEqual(attempts[0], { number: 1, startedMs: NOW, durationMs: 0, statusCode: 200, error: null });
    });

    it('are signed by the standard when there is a secret, with every key while one is replaced', async () => {
      const keys = [SECRET, `whsec_${Buffer.alloc(24, 9).toString('base64')}`].map((secret) => {
        const key = signingKey(secret);
        assert.ok(key !== null);
        return key;
      });
      open({ keys });
      await endRun(receiver.url);
      await receiver.count(1);
      const { headers, body } = receiver.received[0] ?? assert.fail();
      const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
      assert.equal(headers['webhook-timestamp'], String(NOW / 1000));
      const expected = keys.map((key) => `v1,${createHmac('sha256', key.bytes).update(signed).digest('base64')}`);
      assert.equal(headers['webhook-signature'], expected.join(' '));
    });

    it('are tried again with growing pauses until the receiver takes them, under one id', async () => {
      open();
      receiver.script(500, (response) => response.destroy(), 429);
      const runId = await endRun(receiver.url);
      for (const [number, pauseMs] of [
        [1, 1000],
        [2, 2000],
        [3, 4000],
      ] as const) {
        await recorded(runId, number);
        await sleepsFor(pauseMs);
        clock.advance(pauseMs);
      }
      const { delivery, attempts } = await recorded(runId, 4);
      assert.equal(delivery.status, 'delivered');
      assert.deepEqual(
        attempts.map(({ statusCode, error }) => [statusCode, error]),
        [
          [500, 'answered 500'],
          [null, 'UND_ERR_SOCKET'],
          [429, 'answered 429'],
          [200, null],
        ],
      );
      assert.equal(new Set(receiver.received.map((hook) => hook.headers['webhook-id'])).size, 1);
    });

    it('are given up after the last attempt, and one gone receiver ends it at once', async () => {
      open({ maxAttempts: 2 });
      receiver.script(500, 500, 410);
      const first = await endRun(receiver.url);
      await recorded(first, 1);
      await sleepsFor(1000);
      clock.advance(1000);
      assert.equal((await recorded(first, 2)).delivery.status, 'failed');
      const second = await endRun(receiver.url);
      const { delivery, attempts } = await recorded(second, 1);
      assert.equal(delivery.status, 'failed');
      assert.equal(attempts[0]?.statusCode, 410);
      assert.deepEqual(await counts(5), [
        ...['webhook_attempts', 'webhook_attempts', 'webhook_attempts'],
        ...['webhooks_failed', 'webhooks_failed'],
      ]);
    });

    it('wait as long as the receiver asks', async () => {
      open();
      receiver.script((response) => response.writeHead(503, { 'retry-after': '30' }).end());
      const runId = await endRun(receiver.url);
      const { delivery } = await recorded(runId, 1);
      assert.equal(delivery.nextAttemptMs, NOW + 30 * SECOND_MS);
    });

    it('do not follow redirects', async () => {
      const other = await startReceiver();
      open();
      receiver.script((response) => response.writeHead(307, { location: other.url }).end());
      const runId = await endRun(receiver.url);
      const { attempts } = await recorded(runId, 1);
      assert.equal(attempts[0]?.error, 'redirects are not followed');
      assert.equal(other.received.length, 0);
      await other.close();
    });

    it('survive the process: what was not delivered goes out after the restart, once', async () => {
      open();
      receiver.script((response) => {
        // Never answers: the process dies first.
        response.on('close', () => undefined);
      });
      const runId = await endRun(receiver.url);
      await receiver.count(1);
      await webhooks.sender.stop(0);
      await store.stop();
      store = await database.open();
      open();
      // Its lease has to pass: nobody knows whether the old process still tries.
      await sleepsFor(MINUTE_MS);
      clock.advance(MINUTE_MS);
      await sleepsFor(15 * SECOND_MS);
      clock.advance(15 * SECOND_MS);
      const { delivery } = await recorded(runId, 1);
      assert.equal(delivery.status, 'delivered');
      await receiver.count(2);
      assert.equal(receiver.received[0]?.headers['webhook-id'], receiver.received[1]?.headers['webhook-id']);
    });

    it('go to the address that was checked, also when the name changes its mind', async () => {
      const asked: string[] = [];
      open({
        resolver: {
          resolve: (hostname) => {
            asked.push(hostname);
            return Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
          },
        },
      });
      // The system's resolver knows no such name: only a connection to the checked address can arrive.
      const runId = await endRun(`http://receiver.test:${receiver.port}/`);
      assert.equal((await recorded(runId, 1)).delivery.status, 'delivered');
      assert.equal(receiver.received[0]?.headers.host, `receiver.test:${receiver.port}`);
      assert.deepEqual(asked, ['receiver.test']);
    });

    it('are refused at sending when the name has come to point inside since the run was created', async () => {
      const answers = ['93.184.215.14', '127.0.0.1'];
      open({
        allowPrivate: false,
        resolver: { resolve: () => Promise.resolve([{ address: answers.shift() ?? '', family: 4 }]) },
      });
      const url = `http://rebinding.test:${receiver.port}/`;
      assert.equal((await webhooks.admit(url)).kind, 'accepted');
      const runId = await endRun(url);
      const { delivery, attempts } = await recorded(runId, 1);
      assert.equal(delivery.status, 'failed');
      assert.match(attempts[0]?.error ?? '', /not a public address/);
      assert.equal(receiver.received.length, 0);
    });

    it('reach the other receivers while one of them hangs', async () => {
      const other = await startReceiver();
      open();
      receiver.script(...Array.from({ length: 100 }, () => () => undefined));
      for (let i = 0; i < 100; i++) await endRun(receiver.url);
      await receiver.count(8);
      const runId = await endRun(other.url);
      assert.equal((await recorded(runId, 1)).delivery.status, 'delivered');
      assert.equal(receiver.received.length, 8);
      await other.close();
    });

    it('end with an answer that does not', async () => {
      open();
      receiver.script((response) => {
        response.writeHead(200);
        const pour = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65536)));
        };
        response.on('drain', pour);
        pour();
      });
      const runId = await endRun(receiver.url);
      assert.equal((await recorded(runId, 1)).delivery.status, 'delivered');
    });
  },
  { alsoThreaded: true },
);
