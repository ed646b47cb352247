/**
 * Token usage and cost: `usage_metadata` on llm and embedding runs, `aggregated_usage` on the others (agents repeat the
 * sums of their children). The tables below are candidates, the first that holds a count wins.
 */
import type { Attributes } from './attributes.ts';
import { Node } from './document.ts';
import type { NodeWord } from './document.ts';
import { ValueType } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import type { Key } from './keys.ts';
import { Group, Mark } from './keys.ts';
import { RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Writer } from './writer.ts';

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const TWO_TO_32 = 4_294_967_296;

const INPUT = [
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.prompt_tokens',
  'llm.token_count.prompt',
  'ai.usage.inputTokens',
  'ai.usage.promptTokens',
  'ai.usage.tokens',
];
const OUTPUT = [
  'gen_ai.usage.output_tokens',
  'gen_ai.usage.completion_tokens',
  'llm.token_count.completion',
  'ai.usage.outputTokens',
  'ai.usage.completionTokens',
];
const TOTAL = ['gen_ai.usage.total_tokens', 'llm.usage.total_tokens', 'llm.token_count.total', 'ai.usage.totalTokens'];

const INPUT_DETAILS: Readonly<Record<string, readonly string[]>> = {
  cache_read: [
    'gen_ai.usage.cache_read.input_tokens',
    'gen_ai.usage.cache_read_input_tokens',
    'gen_ai.usage.details.cache_read_tokens',
    'llm.token_count.prompt_details.cache_read',
    'ai.usage.inputTokenDetails.cacheReadTokens',
    'ai.usage.cachedInputTokens',
  ],
  cache_creation: [
    'gen_ai.usage.cache_creation.input_tokens',
    'gen_ai.usage.cache_creation_input_tokens',
    'gen_ai.usage.details.cache_write_tokens',
    'llm.token_count.prompt_details.cache_write',
    'ai.usage.inputTokenDetails.cacheWriteTokens',
  ],
  audio: [
    'gen_ai.usage.audio.input_tokens',
    'gen_ai.usage.details.input_audio_tokens',
    'llm.token_count.prompt_details.audio',
  ],
  image: ['gen_ai.usage.image.input_tokens'],
  video: ['gen_ai.usage.video.input_tokens'],
  ephemeral_5m_input_tokens: [],
  ephemeral_1h_input_tokens: [],
};
const OUTPUT_DETAILS: Readonly<Record<string, readonly string[]>> = {
  reasoning: [
    'gen_ai.usage.reasoning.output_tokens',
    'gen_ai.usage.reasoning_tokens',
    'llm.usage.reasoning_tokens',
    'gen_ai.usage.details.reasoning_tokens',
    'llm.token_count.completion_details.reasoning',
    'ai.usage.outputTokenDetails.reasoningTokens',
    'ai.usage.reasoningTokens',
  ],
  audio: [
    'gen_ai.usage.audio.output_tokens',
    'gen_ai.usage.details.output_audio_tokens',
    'llm.token_count.completion_details.audio',
  ],
};
/** Members of the exporters' detail objects that go by another name there; the first that holds a count wins. */
const DETAIL_ALIASES: Readonly<Record<string, readonly string[]>> = {
  cache_creation: ['cache_creation', 'cache_write'],
  ephemeral_1h_input_tokens: ['ephemeral_1h_input_tokens', 'ephemeral_1hr_input_tokens'],
};

const COSTS: Readonly<Record<string, readonly string[]>> = {
  input_cost: ['llm.cost.prompt'],
  output_cost: ['llm.cost.completion'],
  total_cost: ['llm.cost.total', 'operation.cost'],
};
const INPUT_COST_DETAILS: Readonly<Record<string, readonly string[]>> = {
  cache_read: ['llm.cost.prompt_details.cache_read'],
  cache_creation: ['llm.cost.prompt_details.cache_write'],
  audio: ['llm.cost.prompt_details.audio'],
  input: ['llm.cost.prompt_details.input'],
};
const OUTPUT_COST_DETAILS: Readonly<Record<string, readonly string[]>> = {
  reasoning: ['llm.cost.completion_details.reasoning'],
  audio: ['llm.cost.completion_details.audio'],
  output: ['llm.cost.completion_details.output'],
};

const USAGE_PREFIX = 'gen_ai.usage.';
const AGGREGATED_PREFIX = 'gen_ai.aggregated_usage.';
const COST_TEXT = /^(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Candidates of one member, by who asks. */
interface Candidates {
  readonly name: Literal;
  readonly plain: readonly Key[];
  readonly aggregated: readonly Key[];
  readonly both: readonly Key[];
  /** Members of a detail object that mean this one. */
  readonly members: readonly Literal[];
}

type Reading = 'plain' | 'aggregated' | 'both';

export interface Usage {
  /** Writes the object `usage_metadata` of the span; false when it has none. */
  metadata(span: Span, out: Writer): boolean;
  /** Writes the object `aggregated_usage`; false when it has none. */
  aggregated(span: Span, out: Writer): boolean;
}

export function usage(box: Toolbox): Usage {
  const { kernel, keys, docs, values, lit } = box;
  const whole = [
    keys.key('langsmith.usage_metadata', Group.Usage),
    keys.key('langsmith.metadata.usage_metadata', Group.Usage),
  ];

  const candidates = (name: string, names: readonly string[], group: number): Candidates => {
    const aggregated = names
      .filter((key) => key.startsWith(USAGE_PREFIX))
      .map((key) => keys.key(AGGREGATED_PREFIX + key.slice(USAGE_PREFIX.length), Group.Aggregated));
    const plain = names.map((key) => keys.key(key, group));
    return {
      name: lit(`"${name}":`),
      plain,
      aggregated,
      both: [...aggregated, ...plain],
      members: (DETAIL_ALIASES[name] ?? [name]).map((member) => lit(member)),
    };
  };
  const table = (source: Readonly<Record<string, readonly string[]>>, group: number): Candidates[] =>
    Object.entries(source).map(([name, names]) => candidates(name, names, group));

  const input = candidates('input_tokens', INPUT, Group.Usage);
  const output = candidates('output_tokens', OUTPUT, Group.Usage);
  const total = candidates('total_tokens', TOTAL, Group.Usage);
  const inputDetails = table(INPUT_DETAILS, Group.InputDetails);
  const outputDetails = table(OUTPUT_DETAILS, Group.OutputDetails);
  const costs = table(COSTS, Group.Costs);
  const inputCostDetails = table(INPUT_COST_DETAILS, Group.Costs);
  const outputCostDetails = table(OUTPUT_COST_DETAILS, Group.Costs);
  const inputDetailObject = keys.key('gen_ai.usage.input_token_details', Group.InputDetails);
  const outputDetailObject = keys.key('gen_ai.usage.output_token_details', Group.OutputDetails);
  const providerMetadata = keys.key('ai.response.providerMetadata', Group.InputDetails);
  const l = {
    inputDetails: lit('"input_token_details":{'),
    outputDetails: lit('"output_token_details":{'),
    inputCostDetails: lit('"input_cost_details":{'),
    outputCostDetails: lit('"output_cost_details":{'),
    anthropic: lit('anthropic'),
    cacheRead: lit('cacheReadInputTokens'),
    cacheCreation: lit('cacheCreationInputTokens'),
  };

  /** An attribute's value as a count: an integer from 0 to 2^53 - 1, an integral double, or digits; else -1. */
  function countOf(attributes: Attributes, key: Key): number {
    const type = attributes.type(key);
    if (type === ValueType.Absent) return -1;
    const a = attributes.a(key);
    const b = attributes.b(key);
    if (type === ValueType.Int) return b >= 0 && b < 0x200000 ? b * TWO_TO_32 + (a >>> 0) : -1;
    if (type === ValueType.Double) {
      const value = values.double(a, b);
      return Number.isSafeInteger(value) && value >= 0 ? value : -1;
    }
    return type === ValueType.String ? digits(a, b) : -1;
  }

  function digits(at: number, length: number): number {
    if (length === 0 || length > 4096) return -1;
    let value = 0;
    for (let i = 0; i < length; i++) {
      const digit = (kernel.u8[at + i] ?? 0) - 0x30;
      if (digit < 0 || digit > 9) return -1;
      value = value * 10 + digit;
    }
    return Number.isSafeInteger(value) ? value : -1;
  }

  /** A number or string node as a count, or -1. */
  function nodeCount(node: NodeWord): number {
    if (node === 0) return -1;
    const type = docs.type(node);
    if (type === Node.String) {
      const start = docs.start(node) + 1;
      const length = docs.end(node) - 1 - start;
      if (!docs.hasEscape(start, length)) return digits(start, length);
      const text = JSON.parse(docs.text(node)) as string;
      return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : -1;
    }
    if (type !== Node.Number) return -1;
    const value = Number(docs.text(node));
    return Number.isSafeInteger(value) && value >= 0 ? value : -1;
  }

  function first(attributes: Attributes, names: readonly Key[]): number {
    for (const name of names) {
      const count = countOf(attributes, name);
      if (count >= 0) return count;
    }
    return -1;
  }

  function detailNode(attributes: Attributes, key: Key): NodeWord {
    if (!attributes.has(key)) return 0;
    return values.loadLenientObject(attributes.type(key), attributes.a(key), attributes.b(key));
  }

  /** The object `anthropic` of an AI SDK 4 or 5 span, whose input count leaves cached tokens out; else 0. */
  function anthropicNode(span: Span): NodeWord {
    const { attributes, marks } = span;
    if ((marks & Mark.AiInputDetails) !== 0 || !attributes.has(providerMetadata)) return 0;
    if (values.loadKey(attributes, providerMetadata) !== Loaded.Document) return 0;
    const node = docs.member(values.node, l.anthropic);
    return node !== 0 && docs.type(node) === Node.Object ? node : 0;
  }

  function write(name: Literal, count: number, out: Writer): void {
    out.literal(name);
    out.number(count);
    out.comma();
  }

  /** Details found last, by position in their table. */
  const found: number[] = [];

  function readDetails(
    attributes: Attributes,
    details: readonly Candidates[],
    reading: Reading,
    object: NodeWord,
  ): boolean {
    let any = false;
    for (let i = 0; i < details.length; i++) {
      const detail = details[i];
      if (detail === undefined) continue;
      let count = first(attributes, detail[reading]);
      for (let m = 0; count < 0 && object !== 0 && m < detail.members.length; m++) {
        const member = detail.members[m];
        if (member !== undefined) count = nodeCount(docs.member(object, member));
      }
      found[i] = count;
      if (count >= 0) any = true;
    }
    return any;
  }

  function writeDetails(open: Literal, details: readonly Candidates[], out: Writer): void {
    out.literal(open);
    for (let i = 0; i < details.length; i++) {
      const detail = details[i];
      const count = found[i] ?? -1;
      if (detail !== undefined && count >= 0) write(detail.name, count, out);
    }
    out.close(CLOSE_OBJECT);
    out.comma();
  }

  function writeCost(cost: Candidates, attributes: Attributes, out: Writer): boolean {
    for (const key of cost.plain) {
      const type = attributes.type(key);
      if (type === ValueType.Absent) continue;
      const a = attributes.a(key);
      const b = attributes.b(key);
      const start = out.pos;
      out.literal(cost.name);
      if (type === ValueType.Double && values.double(a, b) >= 0) out.number(values.double(a, b));
      else if (type === ValueType.Int && b >= 0 && b < 0x200000) out.integer(a, b);
      else if (type === ValueType.String && COST_TEXT.test(text(a, b))) out.raw(a, b);
      else {
        out.pos = start;
        continue;
      }
      out.comma();
      return true;
    }
    return false;
  }

  const text = (at: number, length: number): string =>
    Buffer.from(kernel.u8.subarray(at, at + length)).toString('latin1');

  function writeCosts(attributes: Attributes, out: Writer): void {
    for (const cost of costs) writeCost(cost, attributes, out);
    for (const [open, details] of [
      [l.inputCostDetails, inputCostDetails],
      [l.outputCostDetails, outputCostDetails],
    ] as const) {
      const start = out.pos;
      out.literal(open);
      let any = false;
      for (const detail of details) any = writeCost(detail, attributes, out) || any;
      if (!any) {
        out.pos = start;
        continue;
      }
      out.close(CLOSE_OBJECT);
      out.comma();
    }
  }

  function writeObject(span: Span, reading: Reading, out: Writer): boolean {
    const { attributes, groups } = span;
    const own = reading !== 'aggregated';
    const start = out.pos;
    out.byte(OPEN_OBJECT);
    let inputCount = first(attributes, input[reading]);
    const outputCount = first(attributes, output[reading]);
    let totalCount = first(attributes, total[reading]);
    const aggregates = reading === 'plain' ? 0 : Group.Aggregated;
    const anthropic = own && (groups & Group.InputDetails) !== 0 ? anthropicNode(span) : 0;
    const hasInputDetails =
      (groups & (Group.InputDetails | aggregates)) !== 0 &&
      readDetails(attributes, inputDetails, reading, own ? detailNode(attributes, inputDetailObject) : 0);
    let hasCache = false;
    if (anthropic !== 0) {
      // cache_read and cache_creation are the first two of the table
      if ((found[0] ?? -1) < 0) found[0] = nodeCount(docs.member(anthropic, l.cacheRead));
      if ((found[1] ?? -1) < 0) found[1] = nodeCount(docs.member(anthropic, l.cacheCreation));
      hasCache = (found[0] ?? -1) >= 0 || (found[1] ?? -1) >= 0;
      if (inputCount >= 0) {
        inputCount += Math.max(found[0] ?? 0, 0) + Math.max(found[1] ?? 0, 0);
        totalCount = inputCount + Math.max(outputCount, 0);
      }
    }
    if (totalCount < 0 && (inputCount >= 0 || outputCount >= 0)) {
      totalCount = Math.max(inputCount, 0) + Math.max(outputCount, 0);
    }
    if (inputCount >= 0) write(input.name, inputCount, out);
    if (outputCount >= 0) write(output.name, outputCount, out);
    if (totalCount >= 0) write(total.name, totalCount, out);
    if (hasInputDetails || hasCache) writeDetails(l.inputDetails, inputDetails, out);
    if (
      (groups & (Group.OutputDetails | aggregates)) !== 0 &&
      readDetails(attributes, outputDetails, reading, own ? detailNode(attributes, outputDetailObject) : 0)
    ) {
      writeDetails(l.outputDetails, outputDetails, out);
    }
    if (own && (groups & Group.Costs) !== 0) writeCosts(attributes, out);
    if (out.pos === start + 1) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_OBJECT);
    return true;
  }

  /** The object that an exporter gave whole, or 0. */
  function wholeNode(span: Span): NodeWord {
    if ((span.marks & Mark.Langsmith) === 0) return 0;
    for (const key of whole) {
      if (values.loadKey(span.attributes, key) === Loaded.Document && docs.type(values.node) === Node.Object) {
        return values.node;
      }
    }
    return 0;
  }

  const PLAIN = Group.Usage | Group.InputDetails | Group.OutputDetails | Group.Costs;
  const isModelRun = (span: Span): boolean => span.runType === RunType.Llm || span.runType === RunType.Embedding;

  return {
    metadata: (span, out) => {
      if ((span.groups & PLAIN) === 0) return false;
      const node = wholeNode(span);
      if (node !== 0) {
        docs.copy(node, out);
        return true;
      }
      return isModelRun(span) && writeObject(span, 'plain', out);
    },
    aggregated: (span, out) => {
      const isModel = isModelRun(span);
      if ((span.groups & (isModel ? Group.Aggregated : PLAIN | Group.Aggregated)) === 0) return false;
      return wholeNode(span) === 0 && writeObject(span, isModel ? 'aggregated' : 'both', out);
    },
  };
}
