/**
 * Walks an ExportTraceServiceRequest in the kernel's memory down to its spans: resource and scope first, then each Span
 * message, in order. Malformed outer messages end the walk.
 */
import { Word } from '../translate/kernel/kernel.ts';
import type { Kernel } from '../translate/kernel/kernel.ts';
import type { Shared } from '../translate/metadata.ts';

const RESOURCE_ATTRIBUTES = 1;
const SCOPE_ATTRIBUTES = 3;

/** Field number << 3 | wire type 2 (length-delimited). */
const Tag = {
  ResourceSpans: (1 << 3) | 2,
  Resource: (1 << 3) | 2,
  ScopeSpans: (2 << 3) | 2,
  /** Before protocol 0.15; only where there are no scope spans. */
  LibrarySpans: (1000 << 3) | 2,
  Scope: (1 << 3) | 2,
  Spans: (2 << 3) | 2,
  ScopeName: (1 << 3) | 2,
} as const;

/** False ends the walk. */
export type OnSpan = (at: number, end: number, shared: Shared) => boolean;

export type Walked = 'done' | 'stopped' | 'malformed';

export class RequestWalk {
  readonly #kernel: Kernel;
  /** Where the Scope message of the span at hand lies. */
  scopeAt = 0;
  scopeEnd = 0;
  readonly #shared: Shared = { resourceAt: 0, resourceEnd: 0, scopeAt: 0, scopeLength: 0 };

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  walk(at: number, end: number, onSpan: OnSpan): Walked {
    const kernel = this.#kernel;
    let pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (pos === 0) return 'malformed';
      if (kernel.i32[Word.ValueType] !== Tag.ResourceSpans) continue;
      const walked = this.#resourceSpans(kernel.i32[Word.ValueA] ?? 0, kernel.i32[Word.ValueB] ?? 0, onSpan);
      if (walked !== 'done') return walked;
    }
    return 'done';
  }

  #resourceSpans(at: number, end: number, onSpan: OnSpan): Walked {
    const kernel = this.#kernel;
    const shared = this.#shared;
    shared.resourceAt = 0;
    shared.resourceEnd = 0;
    let scopes: number = Tag.LibrarySpans;
    let pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (pos === 0) return 'malformed';
      const tag = kernel.i32[Word.ValueType];
      if (tag === Tag.ScopeSpans) scopes = Tag.ScopeSpans;
      else if (tag === Tag.Resource) {
        shared.resourceAt = kernel.i32[Word.ValueA] ?? 0;
        shared.resourceEnd = kernel.i32[Word.ValueB] ?? 0;
      }
    }
    if (kernel.x.checkAttributes(shared.resourceAt, shared.resourceEnd, RESOURCE_ATTRIBUTES) === 0) return 'malformed';
    pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (kernel.i32[Word.ValueType] !== scopes) continue;
      const walked = this.#scopeSpans(kernel.i32[Word.ValueA] ?? 0, kernel.i32[Word.ValueB] ?? 0, onSpan);
      if (walked !== 'done') return walked;
    }
    return 'done';
  }

  #scopeSpans(at: number, end: number, onSpan: OnSpan): Walked {
    const kernel = this.#kernel;
    const shared = this.#shared;
    shared.scopeAt = 0;
    shared.scopeLength = 0;
    this.scopeAt = 0;
    this.scopeEnd = 0;
    let pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (pos === 0) return 'malformed';
      if (kernel.i32[Word.ValueType] !== Tag.Scope) continue;
      if (!this.#scope(kernel.i32[Word.ValueA] ?? 0, kernel.i32[Word.ValueB] ?? 0)) return 'malformed';
    }
    pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (kernel.i32[Word.ValueType] !== Tag.Spans) continue;
      if (!onSpan(kernel.i32[Word.ValueA] ?? 0, kernel.i32[Word.ValueB] ?? 0, shared)) return 'stopped';
    }
    return 'done';
  }

  #scope(at: number, end: number): boolean {
    const kernel = this.#kernel;
    this.scopeAt = at;
    this.scopeEnd = end;
    // A converter reads them.
    if (kernel.x.checkAttributes(at, end, SCOPE_ATTRIBUTES) === 0) return false;
    let pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (pos === 0) return false;
      if (kernel.i32[Word.ValueType] !== Tag.ScopeName) continue;
      const nameAt = kernel.i32[Word.ValueA] ?? 0;
      this.#shared.scopeAt = nameAt;
      this.#shared.scopeLength = (kernel.i32[Word.ValueB] ?? 0) - nameAt;
    }
    return true;
  }
}
