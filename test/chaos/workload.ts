/**
 * What is sent, as a function of its number: any process can say what trace 4711 of a seed looks like, so that nothing has
 * to be remembered or handed over to know whether what arrived is what was sent.
 */
import { createRandom } from '../../bench/random.ts';

export interface SpanSpec {
  /** 8 bytes as hex. */
  readonly spanId: string;
  /** Index of its parent in the trace; -1 for the root. */
  readonly parent: number;
  readonly name: string;
  /** Milliseconds since the Unix epoch, whole. */
  readonly startMs: number;
  readonly endMs: number;
  readonly question: string;
  readonly answer: string;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

export interface TraceSpec {
  readonly number: number;
  /** 16 bytes as hex. */
  readonly traceId: string;
  /** Parents before their children. */
  readonly spans: readonly SpanSpec[];
  /**
   * The requests that bring it, as indices of spans, children first as SDKs export them. One request for most; then every
   * span's place in the tree is certain. Two for some: a restart in between may leave the later half without its parents.
   */
  readonly requests: readonly (readonly number[])[];
}

const EPOCH_MS = Date.parse('2026-05-06T07:08:09.000Z');
const WORDS =
  'weather Paris prices “quoted” back\\slash tab\t line\nbreak ünïcödé 模型 🙂 agents plan tools calls'.split(' ');
/** Marks ids of ours, before the seed and the numbers. */
const TRACE_MARK = 'c4a05';
const SPLIT_RATIO = 0.2;
/** In this many traces one long text, so that batches differ in size. */
const LONG_TEXT_RATIO = 0.02;

export function traceIdOf(seed: number, number: number): string {
  return `${TRACE_MARK}${hex(seed, 11)}${hex(number, 16)}`;
}

/** The number of the trace that an id belongs to, or null when it is none of this seed's. */
export function traceNumberOf(seed: number, traceId: string): number | null {
  const number = Number.parseInt(traceId.slice(16), 16);
  return traceId === traceIdOf(seed, number) ? number : null;
}

/** Span ids say trace and place as well; the first digit keeps them from being zero. */
export function spanIdOf(number: number, index: number): string {
  return `5${hex(number, 11)}${hex(index, 4)}`;
}

export function placeOf(spanId: string): { number: number; index: number } {
  return { number: Number.parseInt(spanId.slice(1, 12), 16), index: Number.parseInt(spanId.slice(12), 16) };
}

export function traceOf(seed: number, number: number): TraceSpec {
  const random = createRandom((Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b)) >>> 0);
  const prose = (count: number): string => Array.from({ length: count }, () => random.pick(WORDS)).join(' ');
  const spanCount = random.chance(0.1) ? random.between(20, 60) : random.between(1, 8);
  const rootStartMs = EPOCH_MS + number * 7;
  const spans: SpanSpec[] = [];
  for (let index = 0; index < spanCount; index++) {
    const parent = index === 0 ? -1 : random.between(0, index - 1);
    const above = spans[parent];
    const startMs = above === undefined ? rootStartMs : above.startMs + random.between(0, 3);
    spans.push({
      spanId: spanIdOf(number, index),
      parent,
      name: `step ${number}/${index} ${random.pick(WORDS)}`,
      startMs,
      endMs: startMs + random.between(0, 5000),
      question: prose(random.chance(LONG_TEXT_RATIO) ? 3000 : random.between(1, 20)),
      answer: prose(random.between(0, 20)),
      attributes: {
        'chaos.text': prose(3),
        'chaos.integer': random.between(-1000, 1_000_000_000),
        'chaos.ratio': random.between(1, 999) / 1000,
        'chaos.flag': random.chance(0.5),
      },
    });
  }
  const all = spans.map((_, index) => index).reverse();
  const isSplit = spanCount > 1 && random.chance(SPLIT_RATIO);
  const cut = random.between(1, spanCount - 1);
  const requests = isSplit ? [all.slice(0, cut), all.slice(cut)] : [all];
  return { number, traceId: traceIdOf(seed, number), spans, requests };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
