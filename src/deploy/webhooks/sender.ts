/**
 * Delivers webhooks. Comes in: rows of the database, put there by the transactions that end runs. Goes out: HTTP requests, and every
 * attempt as a row. The database is the queue, so nothing is lost with the process; here at most `CONCURRENT_COUNT` are in progress
 * and the rest stay rows. It sleeps until the next one is due or `wake` says that there is a new one. On stop no new attempt begins;
 * those in progress get until the deadline and are then cut: they come due again.
 */
import type { Counters } from '../../core/counters.ts';
import type { Clock } from '../../core/lifecycle.ts';
import type { Log } from '../../core/log.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/units.ts';
import type { WebhookDelivery } from '../store/model.ts';
import type { WebhookRepository } from '../store/repositories.ts';
import type { AttemptOutcome, AttemptRequest } from './attempt.ts';
import { stampedPayload } from './payload.ts';
import { signatureHeaders } from './sign.ts';
import type { SigningKey } from './sign.ts';

export interface WebhookSenderSettings {
  webhooks: WebhookRepository;
  attempt(request: AttemptRequest): Promise<AttemptOutcome>;
  /** Of the configuration file; they may hold secrets. */
  headers: Readonly<Record<string, string>>;
  keys: readonly SigningKey[];
  maxAttempts: number;
  /** Before the first retry; doubles with each. */
  backoffMs: number;
  /** What one attempt may take. */
  attemptMs?: number;
  counters: Counters;
  clock: Clock;
  log: Log;
  /** 0 up to 1. */
  random(): number;
}

export interface WebhookSender {
  start(): void;
  /** There is a new delivery. */
  wake(): void;
  stop(deadlineMs: number): Promise<void>;
}

const CONCURRENT_COUNT = 64;
/** To one receiver, so that one that hangs does not keep the others waiting. */
const PER_ORIGIN_COUNT = 8;
/** For one receiver, claimed and waiting here, so that one that is quick need not wait for the database. */
const WAITING_COUNT = 24;
/** No more are claimed for a receiver for which more than these wait. */
const REFILL_COUNT = 8;
const ATTEMPT_MS = 15 * SECOND_MS;
/** In attempts: one, those that it may wait for, and one to spare, so that no other process begins it meanwhile. */
const LEASE_RATIO = 2 + WAITING_COUNT / PER_ORIGIN_COUNT;
const MAX_BACKOFF_MS = HOUR_MS;
/** What other processes left behind is found at the latest then. */
const RECHECK_MS = MINUTE_MS;
/** After the database has failed. */
const PAUSE_MS = 5 * SECOND_MS;

interface Receiver {
  inProgressCount: number;
  /** Claimed, for when an attempt to the same receiver ends. */
  waiting: WebhookDelivery[];
}

export function createWebhookSender(settings: WebhookSenderSettings): WebhookSender {
  const { webhooks, counters, clock, log, attemptMs = ATTEMPT_MS } = settings;
  const stopping = new AbortController();
  const cutting = new AbortController();
  const inProgress = new Set<Promise<void>>();
  const receivers = new Map<string, Receiver>();
  let sleep = new AbortController();
  let isWoken = false;
  let loop: Promise<void> | null = null;

  const wake = (): void => {
    isWoken = true;
    sleep.abort();
  };

  const deliver = async (delivery: WebhookDelivery): Promise<void> => {
    const startedMs = clock.nowMs();
    const number = delivery.attemptCount + 1;
    const body = stampedPayload(delivery.payloadJson, startedMs);
    const deadline = new AbortController();
    const cut = (): void => deadline.abort();
    cutting.signal.addEventListener('abort', cut, { once: true });
    void clock.sleep(attemptMs, deadline.signal).then(cut);
    counters.add('webhook_attempts');
    const outcome = await settings
      .attempt({
        url: delivery.url,
        headers: {
          ...settings.headers,
          'content-type': 'application/json',
          'user-agent': 'collector-proxy',
          ...signatureHeaders(settings.keys, { id: delivery.deliveryId, sentMs: startedMs, body }),
        },
        body,
        signal: deadline.signal,
      })
      .finally(() => {
        cutting.signal.removeEventListener('abort', cut);
        deadline.abort();
      });
    // Cut by our own stop: it says nothing about the receiver, and the row comes due again by itself.
    if (cutting.signal.aborted && outcome.kind === 'failed') return;
    const endedMs = clock.nowMs();
    const isLast = number >= settings.maxAttempts;
    const isOver = outcome.kind === 'final' || (outcome.kind === 'failed' && isLast);
    await webhooks.recordAttempt(
      delivery.deliveryId,
      {
        number,
        startedMs,
        durationMs: endedMs - startedMs,
        statusCode: outcome.statusCode,
        error: outcome.kind === 'delivered' ? null : outcome.error,
      },
      {
        status: outcome.kind === 'delivered' ? 'delivered' : isOver ? 'failed' : 'pending',
        nextAttemptMs: outcome.kind === 'failed' ? endedMs + delayMs(number, outcome.retryAfterMs) : endedMs,
      },
    );
    if (outcome.kind === 'delivered') counters.add('webhooks_delivered');
    if (isOver) {
      counters.add('webhooks_failed');
      const { runId, deliveryId } = delivery;
      log.warn({ runId, deliveryId, attempts: number, reason: outcome.error }, 'webhook not delivered');
    }
  };

  /** Exponential with jitter; a receiver that names a time is given it. */
  const delayMs = (number: number, retryAfterMs: number | null): number => {
    const exponential = Math.min(settings.backoffMs * 2 ** (number - 1), MAX_BACKOFF_MS);
    const jittered = exponential * (0.5 + settings.random() / 2);
    return Math.ceil(Math.min(Math.max(jittered, retryAfterMs ?? 0), MAX_BACKOFF_MS));
  };

  const begin = (delivery: WebhookDelivery, receiver: Receiver): void => {
    receiver.inProgressCount += 1;
    const work = deliver(delivery)
      .catch((error: unknown) => {
        log.error({ err: error, deliveryId: delivery.deliveryId }, 'webhook attempt could not be recorded');
      })
      .finally(() => {
        inProgress.delete(work);
        receiver.inProgressCount -= 1;
        const next = stopping.signal.aborted ? undefined : receiver.waiting.shift();
        if (next !== undefined) begin(next, receiver);
        else if (receiver.inProgressCount === 0) receivers.delete(delivery.origin);
        wake();
      });
    inProgress.add(work);
  };

  /** Milliseconds until there may be something to do. */
  const turn = async (): Promise<number> => {
    const room = CONCURRENT_COUNT - inProgress.size;
    // The end of any attempt wakes the loop.
    if (room <= 0) return RECHECK_MS;
    const nowMs = clock.nowMs();
    const busy = [...receivers].flatMap(([origin, { waiting }]) => (waiting.length > REFILL_COUNT ? [origin] : []));
    const { due, nextDueMs } = await webhooks.claimDue(nowMs, nowMs + LEASE_RATIO * attemptMs, room, busy);
    const tooMany: string[] = [];
    for (const delivery of due) {
      const receiver = receivers.get(delivery.origin) ?? { inProgressCount: 0, waiting: [] };
      receivers.set(delivery.origin, receiver);
      if (receiver.inProgressCount < PER_ORIGIN_COUNT) begin(delivery, receiver);
      else if (receiver.waiting.length < WAITING_COUNT) receiver.waiting.push(delivery);
      else tooMany.push(delivery.deliveryId);
    }
    await webhooks.defer(tooMany, nowMs);
    return nextDueMs === null ? RECHECK_MS : Math.min(Math.max(nextDueMs - nowMs, 0), RECHECK_MS);
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      isWoken = false;
      let idleMs: number;
      try {
        idleMs = await turn();
      } catch (error) {
        log.error({ err: error }, 'webhook deliveries could not be read');
        idleMs = PAUSE_MS;
      }
      sleep = new AbortController();
      if (isWoken || stopping.signal.aborted) continue;
      await clock.sleep(idleMs, sleep.signal);
    }
  };

  return {
    start: () => {
      loop ??= run();
    },
    wake,
    stop: async (deadlineMs) => {
      stopping.abort();
      wake();
      await loop;
      const waiting = [...receivers.values()].flatMap((receiver) => receiver.waiting.splice(0));
      await webhooks.defer(
        waiting.map((delivery) => delivery.deliveryId),
        clock.nowMs(),
      );
      const enough = new AbortController();
      await Promise.race([
        Promise.all(inProgress).finally(() => enough.abort()),
        clock.sleep(deadlineMs, enough.signal),
      ]);
      cutting.abort();
      await Promise.all(inProgress);
    },
  };
}
