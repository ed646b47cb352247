/**
 * News from other processes on the same PostgreSQL. Comes in: notifications, on one connection of its own. Goes out: calls to the
 * listeners, never for our own. When the connection breaks it is opened again after a moment, and the
 * listeners hear that they may have missed something. On stop the connection is closed.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import pg from 'pg';
import type { Clock } from '../../core/lifecycle.ts';
import type { Log } from '../../core/log.ts';
import { SECOND_MS } from '../../core/units.ts';
import type { ForeignChange } from './repositories.ts';

const CHANNEL = 'deploy_change';
const RECONNECT_MS = 2 * SECOND_MS;

export interface ForeignChanges {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** To be called in the transaction that makes the change. */
  tell(on: Pick<Kysely<never>, 'executeQuery' | 'getExecutor'>, change: ForeignChange): Promise<void>;
}

export function createForeignChanges(s: {
  url: string;
  /** Distinguishes this process from the others. */
  instanceId: string;
  onChange(change: ForeignChange): void;
  clock: Clock;
  log: Log;
}): ForeignChanges {
  const stopping = new AbortController();
  let client: pg.Client | null = null;
  let reconnecting: Promise<void> | null = null;

  const connect = async (): Promise<void> => {
    const fresh = new pg.Client({
      connectionString: s.url,
      keepAlive: true,
      application_name: 'collector-proxy-listen',
    });
    fresh.on('notification', (message) => {
      const [from, text] = split(message.payload ?? '');
      if (from === s.instanceId) return;
      try {
        s.onChange(JSON.parse(text) as ForeignChange);
      } catch (error) {
        s.log.warn({ err: error }, 'a notification of another process was not understood');
      }
    });
    fresh.on('error', (error) => {
      s.log.warn({ err: error }, 'connection for notifications lost');
      lost(fresh);
    });
    fresh.on('end', () => lost(fresh));
    try {
      await fresh.connect();
      await fresh.query(`listen ${CHANNEL}`);
    } catch (error) {
      // What went wrong is told below; that a connection in trouble does not close well adds nothing to it.
      await fresh.end().catch(() => undefined);
      throw error;
    }
    client = fresh;
  };

  const lost = (which: pg.Client): void => {
    if (client !== which || stopping.signal.aborted) return;
    client = null;
    reconnecting ??= reconnect().finally(() => {
      reconnecting = null;
    });
  };

  const reconnect = async (): Promise<void> => {
    while (!stopping.signal.aborted && client === null) {
      await s.clock.sleep(RECONNECT_MS, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await connect();
        s.onChange({ kind: 'gap' });
      } catch (error) {
        s.log.warn({ err: error }, 'connection for notifications could not be opened');
      }
    }
  };

  return {
    start: connect,
    tell: async (on, change) => {
      await sql`select pg_notify(${CHANNEL}, ${`${s.instanceId} ${JSON.stringify(change)}`})`.execute(on);
    },
    stop: async () => {
      stopping.abort();
      await reconnecting;
      const last = client;
      client = null;
      await last?.end();
    },
  };
}

function split(payload: string): [string, string] {
  const space = payload.indexOf(' ');
  return space < 0 ? ['', payload] : [payload.slice(0, space), payload.slice(space + 1)];
}
