/**
 * Bodies that decode threads die of. A body whose thread died is *suspect*: when it comes again, it travels alone, one
 * at a time, and a copy is kept; what survives that is suspect no more. A suspect whose thread dies again is *poison*: it
 * is set aside, and from then on refused without being looked at.
 *
 * Suspects are known by their {@link Print}, since nothing else is left of them; poison by the SHA-256 of its bytes.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../core/lifecycle.ts';
import { HOUR_MS } from '../core/units.ts';
import { printOf, type Print } from './hands.ts';

/** What is to be done with a body that has come. */
export type Judgement =
  | { readonly kind: 'clear' }
  /** Nothing else may be in its task; see {@link Quarantine.survived} and {@link Quarantine.died}. */
  | { readonly kind: 'suspect'; readonly trial: Trial }
  /** Another one like it is being tried just now. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'poison'; readonly hash: string };

/** A suspect on its way, whole. */
export interface Trial {
  readonly key: string;
  readonly hash: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Threads that a body may cost. */
const MAX_DEATHS = 2;
/** Beyond these the oldest are forgotten: they cost threads anew. */
const MAX_SUSPECTS = 256;
const MAX_POISONS = 4096;
/** Suspects that do not come again. */
const SUSPICION_MS = HOUR_MS;

const CLEAR: Judgement = { kind: 'clear' };

interface Suspicion {
  deathCount: number;
  sinceMs: number;
  onTrial: boolean;
}

export class Quarantine {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #suspects = new Map<string, Suspicion>();
  /** Hashes by print: one print may stand for several bodies. */
  readonly #poisons = new Map<string, Set<string>>();

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
  }

  /** Free of cost while no thread has died of a body. */
  judge(bytes: Uint8Array): Judgement {
    if (this.#suspects.size === 0 && this.#poisons.size === 0) return CLEAR;
    const key = keyOf(printOf(bytes));
    const poisons = this.#poisons.get(key);
    const suspicion = this.#suspicion(key);
    if (poisons === undefined && suspicion === undefined) return CLEAR;
    const hash = createHash('sha256').update(bytes).digest('hex');
    if (poisons?.has(hash) === true) return { kind: 'poison', hash };
    if (suspicion === undefined) return CLEAR;
    if (suspicion.onTrial) return { kind: 'wait' };
    suspicion.onTrial = true;
    return { kind: 'suspect', trial: { key, hash, bytes: Uint8Array.from(bytes) } };
  }

  /** A thread died with this body in its hands, which travelled with others. */
  suspect(print: Print): void {
    const key = keyOf(print);
    const before = this.#suspicion(key);
    this.#suspects.delete(key);
    if (this.#suspects.size >= MAX_SUSPECTS) forgetFirst(this.#suspects);
    this.#suspects.set(key, {
      deathCount: (before?.deathCount ?? 0) + 1,
      sinceMs: this.#clock.nowMs(),
      onTrial: before?.onTrial ?? false,
    });
  }

  /** A thread died of it, as a thread had before. True: it is poison now. */
  died({ key, hash }: Trial): boolean {
    const suspicion = this.#suspects.get(key);
    const deathCount = (suspicion?.deathCount ?? 0) + 1;
    if (deathCount < MAX_DEATHS) {
      this.#suspects.set(key, { deathCount, sinceMs: this.#clock.nowMs(), onTrial: false });
      return false;
    }
    this.#suspects.delete(key);
    if (this.#poisons.size >= MAX_POISONS) forgetFirst(this.#poisons);
    const hashes = this.#poisons.get(key) ?? new Set();
    hashes.add(hash);
    this.#poisons.set(key, hashes);
    return true;
  }

  /** It was decoded, or refused. */
  survived({ key }: Trial): void {
    this.#suspects.delete(key);
  }

  /** Nothing was learned: it was put off, or lost for another reason. */
  untried({ key }: Trial): void {
    const suspicion = this.#suspects.get(key);
    if (suspicion !== undefined) suspicion.onTrial = false;
  }

  #suspicion(key: string): Suspicion | undefined {
    const suspicion = this.#suspects.get(key);
    if (suspicion === undefined || suspicion.onTrial) return suspicion;
    if (this.#clock.nowMs() - suspicion.sinceMs <= SUSPICION_MS) return suspicion;
    this.#suspects.delete(key);
    return undefined;
  }
}

function keyOf({ checksum, lengthBytes }: Print): string {
  return `${lengthBytes}:${checksum}`;
}

function forgetFirst(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
