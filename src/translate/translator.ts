/**
 * One Span message in, one record out (core/record.ts). Owns the tools, knows the order of the record's parts, and
 * nothing of conventions: those are in precedence.ts.
 *
 * What comes in: a Span message in the kernel's memory. What goes out: a record behind it, at an address of the
 * translator's choosing, valid until the next span. Nothing is kept between spans.
 */
import {
  alignRecord,
  Part,
  PART_COUNT,
  RECORD_ALIGN_BYTES,
  RECORD_HEADER_BYTES,
  RecordFlag,
  RecordOffset,
} from '../core/record.ts';
import { Attributes } from './attributes.ts';
import { control } from './control.ts';
import type { Control } from './control.ts';
import { Documents } from './document.ts';
import { EventReader } from './events.ts';
import { genericMembers } from './generic.ts';
import { head } from './head.ts';
import type { Head, ProjectText } from './head.ts';
import { IndexedFamilies, IndexedView } from './indexed.ts';
import { invocationParams } from './invocation.ts';
import type { InvocationParams } from './invocation.ts';
import { Double, SLACK_BYTES, Word } from './kernel/kernel.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';
import { Group, KeyTable, Mark } from './keys.ts';
import { Messages } from './messages/messages.ts';
import { ClaimedKeys, SharedMembers } from './members.ts';
import { metadata } from './metadata.ts';
import type { Metadata, Shared } from './metadata.ts';
import { precedence } from './precedence.ts';
import type { Precedence } from './precedence.ts';
import { runTypes } from './runtype.ts';
import { RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { usage } from './usage.ts';
import type { Usage } from './usage.ts';
import { Values } from './value.ts';
import { Verdict } from './verdict.ts';
import { Wrapping } from './wrap.ts';
import { RegionFull, Writer } from './writer.ts';

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
const START_GIVEN = 1;
const END_GIVEN = 2;
const CLOSE_OBJECT = 0x7d;
const OPEN_OBJECT = 0x7b;

/** Largest Span message that is translated; the backend's own limit per request is less than half of it. */
export const MAX_SPAN_BYTES = 64 * 1024 * 1024;
/**
 * Size of each of a span's regions (scratch, draft, output), in bytes per byte of its message: address space, touched
 * only as far as needed. A span that needs more (mostly control characters, each six bytes as JSON) is translated again
 * with regions four times the size.
 */
const REGION_RATIO = 4;
const REGION_GROWTH = 4;
const MAX_REGION_RATIO = 64;
const REGION_BYTES = 64 * 1024;
/** Room for a rendered resource; no value's JSON is that much longer than its message. */
const RESOURCE_RATIO = 32;
const RESOURCE_ATTRIBUTES = 1;
/** Addresses are used as signed 32-bit integers. */
const MAX_ADDRESS = 0x7fff0000;
/** An attribute with an index or a prefix takes at least this many bytes in a message. */
const MIN_LISTED_BYTES = 12;
const INDEXED_BYTES = 32;
const PREFIXED_BYTES = 24;

const align = (lengthBytes: number): number => (lengthBytes + SLACK_BYTES + 15) & -16;

/** What all spans of one request share. */
export interface RequestContext {
  /** API key, in the kernel's memory. */
  keyAt: number;
  keyLength: number;
  keyHash: number;
  project: ProjectText;
  receivedUs: number;
  sourceNumber: number;
}

export interface TranslatorSettings {
  readonly genericAttributes: boolean;
}

/** Why a span was not translated; null when it was. */
export type SpanProblem = 'malformed' | 'invalid trace id' | 'invalid span id' | 'too large';

export class Translator {
  readonly #kernel: Kernel;
  readonly #box: Toolbox;
  readonly #span: Span;
  readonly #attributes: Attributes;
  readonly #event: Attributes;
  readonly #events: EventReader;
  readonly #scratch: Writer;
  readonly #draft: Writer;
  readonly #out: Writer;
  readonly #docs: Documents;
  readonly #runType: (span: Span) => number;
  readonly #head: Head;
  readonly #precedence: Precedence;
  readonly #usage: Usage;
  readonly #metadata: Metadata;
  /** The resource of the spans at hand, rendered once. */
  readonly #resource: SharedMembers;
  readonly #resourceKeys: ClaimedKeys;
  readonly #resourceOut: Writer;
  #resourceAt = -1;
  #resourceFree = 0;
  readonly #params: InvocationParams;
  readonly #verdict: Verdict;
  readonly #control: Control;
  readonly #genAiScopes: Literal[];
  readonly #genAiScopePrefixes: Literal[];
  readonly #l;
  #recordAt = 0;

  constructor(kernel: Kernel, settings: TranslatorSettings) {
    this.#kernel = kernel;
    const keys = new KeyTable(kernel);
    this.#scratch = new Writer(kernel);
    this.#draft = new Writer(kernel);
    this.#out = new Writer(kernel);
    this.#resourceOut = new Writer(kernel);
    this.#docs = new Documents(kernel, this.#scratch);
    const values = new Values(kernel, this.#docs, this.#scratch);
    const families = new IndexedFamilies(keys);
    const view = new IndexedView(kernel, families);
    const lit = (text: string): Literal => kernel.literal(text);
    const box: Toolbox = {
      kernel,
      keys,
      docs: this.#docs,
      values,
      families,
      view,
      scratch: this.#scratch,
      draft: this.#draft,
      lit,
    };
    this.#box = box;
    this.#attributes = new Attributes(kernel);
    this.#event = new Attributes(kernel);
    this.#events = new EventReader(box, this.#event);
    const messages = new Messages(box);
    const wrapping = new Wrapping(box);
    this.#precedence = precedence(box, messages, wrapping, this.#events);
    const { conventions } = this.#precedence;
    this.#runType = runTypes(box);
    this.#head = head(box);
    this.#usage = usage(box);
    const generic = settings.genericAttributes ? genericMembers(box) : null;
    this.#resource = new SharedMembers(box);
    this.#resourceKeys = new ClaimedKeys(box);
    this.#metadata = metadata(
      box,
      this.#usage,
      this.#resource,
      (span) => conventions.openInference.isCompletion(span),
      generic,
    );
    this.#params = invocationParams(box, messages, this.#events, conventions);
    this.#verdict = new Verdict(box, this.#events);
    this.#control = control(box);
    this.#genAiScopes = ['ai', 'langsmith', 'openinference', 'traceloop', 'pydantic-ai', 'mcp'].map(lit);
    this.#genAiScopePrefixes = ['@arizeai/openinference', '@traceloop/'].map(lit);
    this.#l = {
      usageIs: lit('"usage_metadata":'),
      metadataIs: lit('{"metadata":'),
      paramsIs: lit(',"invocation_params":'),
    };
    this.#attributes.allocate(keys.count);
    this.#event.allocate(keys.count);
    keys.seal();
    this.#span = {
      attributes: this.#attributes,
      event: this.#event,
      runType: RunType.Chain,
      marks: 0,
      groups: 0,
      families: 0,
      eventCount: 0,
      eventKinds: 0,
      outputsHaveUsage: false,
      usageAt: 0,
      usageLength: 0,
      reasons: 0,
      reason: 0,
      reasonsKnown: false,
    };
  }

  /** Address of the record made last. */
  get recordAt(): number {
    return this.#recordAt;
  }

  /** Length of the record made last, bytes. */
  get recordBytes(): number {
    return this.#out.pos - this.#recordAt;
  }

  /**
   * Translates the Span message in [at, end). `free` is the first address behind everything that has to stay. Null, or
   * why there is no record.
   */
  translate(at: number, end: number, free: number, context: RequestContext, shared: Shared): SpanProblem | null {
    if (end - at > MAX_SPAN_BYTES) return 'too large';
    if (shared.resourceAt !== this.#resourceAt && !this.#renderResource(free, shared)) return 'too large';
    for (let ratio = REGION_RATIO; ratio <= MAX_REGION_RATIO; ratio *= REGION_GROWTH) {
      if (!this.#layOut(end - at, this.#resourceFree, ratio)) return 'too large';
      try {
        return this.#translate(at, end, context, shared);
      } catch (error) {
        if (!(error instanceof RegionFull)) throw error;
      }
    }
    return 'too large';
  }

  /** Forgets the request before: addresses mean something else now. */
  begin(): void {
    this.#resourceAt = -1;
  }

  /** Renders the resource behind `free`, where it stays until the next one. False when there is not that much memory. */
  #renderResource(free: number, shared: Shared): boolean {
    const { resourceAt, resourceEnd } = shared;
    const regionBytes = (resourceEnd - resourceAt) * RESOURCE_RATIO + SLACK_BYTES;
    const at = align(free);
    const scratch = align(at + regionBytes);
    if (scratch + regionBytes > MAX_ADDRESS) return false;
    this.#kernel.reserve(scratch + regionBytes);
    this.#resourceOut.place(at, regionBytes);
    this.#scratch.place(scratch, regionBytes);
    this.#resource.render(resourceAt, resourceEnd, RESOURCE_ATTRIBUTES, this.#resourceKeys, this.#resourceOut);
    this.#resourceAt = resourceAt;
    this.#resourceFree = this.#resourceOut.pos;
    return true;
  }

  #translate(at: number, end: number, context: RequestContext, shared: Shared): SpanProblem | null {
    const code = this.#attributes.scanSpan(at, end);
    if (code !== 0) return code === 1 ? 'malformed' : 'too large';
    const { i32 } = this.#kernel;
    if (!this.#isId(Word.TraceOff, Word.TraceLen, TRACE_ID_BYTES)) return 'invalid trace id';
    if (!this.#isId(Word.SpanOff, Word.SpanLen, SPAN_ID_BYTES)) return 'invalid span id';
    const span = this.#span;
    span.marks = i32[Word.Marks] ?? 0;
    span.groups = i32[Word.Groups] ?? 0;
    span.families = this.#attributes.indexedCount > 0 ? this.#box.view.present(this.#attributes) : 0;
    span.outputsHaveUsage = false;
    span.reasonsKnown = false;
    this.#write(at, end, context, shared);
    return null;
  }

  /** Lays the regions of one span out behind `free`. False when there is not that much memory. */
  #layOut(length: number, free: number, ratio: number): boolean {
    const entries = ((length / MIN_LISTED_BYTES) | 0) + 1;
    const indexedBytes = align(entries * INDEXED_BYTES);
    const prefixedBytes = align(entries * PREFIXED_BYTES);
    const regionBytes = length * ratio + REGION_BYTES;
    const lists = align(free);
    const scratch = lists + 2 * (indexedBytes + prefixedBytes);
    const stride = regionBytes + SLACK_BYTES + (-(regionBytes + SLACK_BYTES) & 15);
    if (scratch + 3 * stride > MAX_ADDRESS) return false;
    this.#kernel.reserve(scratch + 3 * stride);
    this.#attributes.layOut(lists, entries, lists + indexedBytes, entries);
    const eventLists = lists + indexedBytes + prefixedBytes;
    this.#event.layOut(eventLists, entries, eventLists + indexedBytes, entries);
    this.#scratch.place(scratch, regionBytes);
    this.#draft.place(scratch + stride, regionBytes);
    this.#recordAt = scratch + 2 * stride;
    this.#out.place(this.#recordAt, regionBytes);
    this.#docs.reset();
    return true;
  }

  #isId(offset: number, length: number, size: number): boolean {
    const { i32, u8 } = this.#kernel;
    if (i32[length] !== size) return false;
    const at = i32[offset] ?? 0;
    for (let i = at; i < at + size; i++) if (u8[i] !== 0) return true;
    return false;
  }

  #write(at: number, end: number, context: RequestContext, shared: Shared): void {
    const kernel = this.#kernel;
    const span = this.#span;
    const out = this.#out;
    const attributes = this.#attributes;
    let flags = this.#parentFlag();
    if (this.#isGenAi(at, end, shared)) flags |= RecordFlag.GenAi;

    // times
    const endUsGiven = kernel.f64[Double.EndUs] ?? 0;
    let startUs = kernel.f64[Double.StartUs] ?? 0;
    const given = kernel.i32[Word.Given] ?? 0;
    const notEnded = (given & END_GIVEN) === 0;
    if ((given & START_GIVEN) === 0) startUs = notEnded ? context.receivedUs : endUsGiven;
    const endUs = notEnded ? startUs : Math.max(startUs, endUsGiven);
    if (notEnded) flags |= RecordFlag.NotEnded;

    span.runType = this.#runType(span);
    const status = this.#verdict.judge(span, notEnded, shared.scopeAt, shared.scopeLength);
    const isControlled = (span.groups & Group.Control) !== 0;
    if (isControlled && this.#control.isForcedRoot(attributes)) flags |= RecordFlag.ForcedRoot;

    this.#renderUsage(span);
    out.room(RECORD_HEADER_BYTES);
    out.pos += RECORD_HEADER_BYTES;
    this.#partStart = out.pos;
    out.raw(context.keyAt, context.keyLength);
    this.#endPart(Part.Key);
    if (isControlled) flags |= this.#control.writeOverrides(attributes, out);
    this.#endPart(Part.Overrides);
    this.#head.write(span, status, context.project, out);
    this.#endPart(Part.Head);
    this.#precedence.inputs(span, out);
    this.#endPart(Part.Inputs);
    if (this.#precedence.outputs(span, out)) this.#addUsage(span, out);
    this.#endPart(Part.Outputs);
    this.#verdict.writeEvents(span, startUs, out);
    this.#endPart(Part.Events);
    out.literal(this.#l.metadataIs);
    this.#metadata.write(span, shared, at, end, this.#verdict, out);
    const params = out.pos;
    out.literal(this.#l.paramsIs);
    if (!this.#params(span, out)) out.pos = params;
    out.byte(CLOSE_OBJECT);
    this.#endPart(Part.Extra);
    this.#verdict.writeError(span, out);
    this.#endPart(Part.Error);
    if ((span.groups & Group.Serialized) !== 0) this.#control.writeSerialized(attributes, out);
    this.#endPart(Part.Serialized);
    if (isControlled) this.#control.writeAttachments(span, out);
    this.#endPart(Part.Attachments);
    this.#writeHeader(flags, startUs, endUs, context);
  }
  #partStart = 0;
  readonly #lengths = new Int32Array(PART_COUNT);

  #endPart(part: number): void {
    this.#lengths[part] = this.#out.pos - this.#partStart;
    this.#partStart = this.#out.pos;
  }

  #writeHeader(flags: number, startUs: number, endUs: number, context: RequestContext): void {
    const kernel = this.#kernel;
    const out = this.#out;
    const record = this.#recordAt;
    const total = alignRecord(out.pos - record);
    out.room(RECORD_ALIGN_BYTES);
    for (let i = out.pos; i < record + total; i++) kernel.u8[i] = 0;
    out.pos = record + total;
    const { i32, u32, f64, x } = kernel;
    const word = record >> 2; // records are aligned
    u32[word + (RecordOffset.TotalBytes >> 2)] = total;
    u32[word + (RecordOffset.Flags >> 2)] = flags;
    x.copy(i32[Word.TraceOff] ?? 0, TRACE_ID_BYTES, record + RecordOffset.TraceId);
    // in this order: a copy writes sixteen bytes, of which the next field takes the second half
    x.copy(i32[Word.SpanOff] ?? 0, SPAN_ID_BYTES, record + RecordOffset.SpanId);
    u32[word + (RecordOffset.ParentSpanId >> 2)] = 0;
    u32[word + (RecordOffset.ParentSpanId >> 2) + 1] = 0;
    if ((flags & RecordFlag.HasParent) !== 0) {
      x.copy(i32[Word.ParentOff] ?? 0, SPAN_ID_BYTES, record + RecordOffset.ParentSpanId);
    }
    f64[(record + RecordOffset.StartUs) >> 3] = startUs;
    f64[(record + RecordOffset.EndUs) >> 3] = endUs;
    u32[word + (RecordOffset.KeyHash >> 2)] = context.keyHash;
    u32[word + (RecordOffset.Source >> 2)] = context.sourceNumber;
    for (let part = 0; part < PART_COUNT; part++) {
      u32[word + (RecordOffset.PartLengths >> 2) + part] = this.#lengths[part] ?? 0;
    }
  }

  /** `HasParent` when the span names a parent that is an id, not zero and not the span itself. */
  #parentFlag(): number {
    const { i32, x } = this.#kernel;
    if (!this.#isId(Word.ParentOff, Word.ParentLen, SPAN_ID_BYTES)) return 0;
    return x.equals(i32[Word.ParentOff] ?? 0, i32[Word.SpanOff] ?? 0, SPAN_ID_BYTES) !== 0 ? 0 : RecordFlag.HasParent;
  }

  /** Lists the events on the way: their names count too. */
  #isGenAi(at: number, end: number, shared: Shared): boolean {
    const { i32, x } = this.#kernel;
    const byEvent = this.#events.list(this.#span, at, end, i32[Word.Events] ?? 0);
    if (byEvent || (this.#span.marks & Mark.GenAi) !== 0) return true;
    if (this.#events.isGenAi(i32[Word.NameOff] ?? 0, i32[Word.NameLen] ?? 0)) return true;
    const { scopeAt, scopeLength } = shared;
    if (scopeLength === 0) return false;
    if (this.#events.isGenAi(scopeAt, scopeLength)) return true;
    for (const scope of this.#genAiScopes) {
      if (scope.length === scopeLength && x.equals(scope.at, scopeAt, scopeLength) !== 0) return true;
    }
    for (const prefix of this.#genAiScopePrefixes) {
      if (scopeLength >= prefix.length && x.equals(prefix.at, scopeAt, prefix.length) !== 0) return true;
    }
    return false;
  }

  /** Outputs carry the usage too, unless they brought one. */
  #addUsage(span: Span, out: Writer): void {
    if (span.outputsHaveUsage || span.usageLength === 0) return;
    out.pos--; // the closing brace
    if (!this.#endsWithOpenBrace(this.#kernel.u8, out.pos)) out.comma();
    out.literal(this.#l.usageIs);
    out.raw(span.usageAt, span.usageLength);
    out.byte(CLOSE_OBJECT);
  }

  /** Renders the usage once, into scratch: it is written to the outputs and to the metadata. */
  #renderUsage(span: Span): void {
    const scratch = this.#draft;
    span.usageAt = scratch.pos;
    span.usageLength = this.#usage.metadata(span, scratch) ? scratch.pos - span.usageAt : 0;
    scratch.align();
  }

  #endsWithOpenBrace(u8: Uint8Array, end: number): boolean {
    let at = end - 1;
    while (u8[at] === 0x20 || u8[at] === 0x0a || u8[at] === 0x0d || u8[at] === 0x09) at--;
    return u8[at] === OPEN_OBJECT && at === this.#partStart;
  }
}
