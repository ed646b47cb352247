/**
 * The connections to the backend, none of them used for longer than `lifeMs`: a name whose address has changed is followed
 * within that time, although the old address may go on answering. Requests under way end where they are.
 *
 * The whole pool is replaced. undici's own `clientTtl` closes single connections while requests still wait for them, which
 * then fail.
 */
import { buildConnector, Pool } from 'undici';
import type { Dispatcher } from 'undici';
import type { LookupFunction } from 'node:net';

export interface ConnectionSettings {
  readonly uploadConcurrency: number;
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly connectionLifeMs: number;
}

export class Connections {
  readonly #origin: string;
  readonly #settings: ConnectionSettings;
  /** Outlives its pools, and so do the TLS sessions that it remembers. */
  readonly #connect: buildConnector.connector;
  readonly #retired = new Set<Pool>();
  #pool: Pool;
  #openedMs: number;

  /** `lookup`: of names, instead of the system's. */
  constructor(origin: string, settings: ConnectionSettings, lookup?: LookupFunction) {
    this.#origin = origin;
    this.#settings = settings;
    this.#connect = buildConnector({ timeout: settings.connectTimeoutMs, ...(lookup !== undefined && { lookup }) });
    this.#pool = this.#open();
    this.#openedMs = performance.now();
  }

  /** For one request, to be dispatched at once. */
  current(): Pick<Dispatcher, 'dispatch'> {
    if (performance.now() - this.#openedMs > this.#settings.connectionLifeMs) {
      const retired = this.#pool;
      this.#retired.add(retired);
      void retired.close().then(() => this.#retired.delete(retired));
      this.#pool = this.#open();
      this.#openedMs = performance.now();
    }
    return this.#pool;
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#pool, ...this.#retired].map((pool) => pool.destroy()));
  }

  #open(): Pool {
    const { uploadConcurrency, headersTimeoutMs, bodyTimeoutMs } = this.#settings;
    return new Pool(this.#origin, {
      connections: uploadConcurrency,
      // One request a connection: a slow answer must not hold up others behind it.
      pipelining: 1,
      connect: this.#connect,
      headersTimeout: headersTimeoutMs,
      bodyTimeout: bodyTimeoutMs,
    });
  }
}
