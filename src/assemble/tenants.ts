/**
 * Finds the tenant of a record by its API key; no string is made while one tenant's records follow each other. Bounded:
 * the key not seen for the longest time is forgotten; should it come back it gets a new number, and spans of its open
 * traces no longer find each other.
 */
import type { RecordView } from '../core/recordview.ts';
import type { Tenant } from '../core/run.ts';

export class Tenants {
  readonly #maxCount: number;
  /** By the key's bytes as latin1; insertion order is the order of last use. */
  readonly #known = new Map<string, Tenant>();
  #last: Tenant = { number: 0, apiKey: '' };
  #lastKey = Buffer.alloc(0);
  #lastHash = -1;
  #nextNumber = 1;

  constructor(maxCount: number) {
    this.#maxCount = maxCount;
  }

  get count(): number {
    return this.#known.size;
  }

  resolve(record: RecordView): Tenant {
    const hash = record.keyHash;
    const at = record.keyOffset;
    const end = at + record.keyBytes;
    if (hash === this.#lastHash && this.#lastKey.compare(record.bytes, at, end) === 0) return this.#last;
    const name = record.bytes.toString('latin1', at, end);
    let tenant = this.#known.get(name);
    if (tenant === undefined) {
      if (this.#known.size >= this.#maxCount) this.#forgetOldest();
      tenant = { number: this.#nextNumber++, apiKey: record.bytes.toString('utf8', at, end) };
    } else {
      this.#known.delete(name);
    }
    this.#known.set(name, tenant);
    this.#last = tenant;
    this.#lastKey = Buffer.from(name, 'latin1');
    this.#lastHash = hash;
    return tenant;
  }

  #forgetOldest(): void {
    const oldest = this.#known.keys().next();
    if (oldest.done !== true) this.#known.delete(oldest.value);
  }
}
