/** Token usage and cost. */
import { isObject, Num, object, type Json, type JsonObject } from './json.ts';
import { readLenient } from './lenient.ts';
import type { Span } from './span.ts';
import { J, JObject, type Attributes } from './values.ts';

export interface Usage {
  /** For llm and embedding runs, or given whole. */
  readonly usageMetadata: JsonObject | undefined;
  readonly aggregatedUsage: JsonObject | undefined;
}

const counts = {
  input_tokens: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
    'ai.usage.tokens',
  ],
  output_tokens: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
  ],
  total_tokens: [
    'gen_ai.usage.total_tokens',
    'llm.usage.total_tokens',
    'llm.token_count.total',
    'ai.usage.totalTokens',
  ],
};

const inputDetails = {
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
};

const outputDetails = {
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

/** Member of a details object → ours. */
const inputDetailNames = {
  cache_read: 'cache_read',
  cache_creation: 'cache_creation',
  cache_write: 'cache_creation',
  audio: 'audio',
  image: 'image',
  video: 'video',
  ephemeral_5m_input_tokens: 'ephemeral_5m_input_tokens',
  ephemeral_1h_input_tokens: 'ephemeral_1h_input_tokens',
  ephemeral_1hr_input_tokens: 'ephemeral_1h_input_tokens',
};
const outputDetailNames = { reasoning: 'reasoning', audio: 'audio' };

const costs = {
  input_cost: ['llm.cost.prompt'],
  output_cost: ['llm.cost.completion'],
  total_cost: ['llm.cost.total', 'operation.cost'],
};
const inputCostDetails = {
  cache_read: ['llm.cost.prompt_details.cache_read'],
  cache_creation: ['llm.cost.prompt_details.cache_write'],
  audio: ['llm.cost.prompt_details.audio'],
  input: ['llm.cost.prompt_details.input'],
};
const outputCostDetails = {
  reasoning: ['llm.cost.completion_details.reasoning'],
  audio: ['llm.cost.completion_details.audio'],
  output: ['llm.cost.completion_details.output'],
};

export function usageOf(span: Span): Usage {
  const { attributes } = span;
  for (const key of ['langsmith.usage_metadata', 'langsmith.metadata.usage_metadata']) {
    const whole = JObject(attributes.raw(key));
    if (whole !== undefined) return { usageMetadata: whole, aggregatedUsage: undefined };
  }
  const aggregatedKeys = (keys: readonly string[]): string[] =>
    keys.flatMap((key) =>
      key.startsWith('gen_ai.usage.') ? [key.replace('gen_ai.usage.', 'gen_ai.aggregated_usage.')] : [],
    );
  if (span.runType === 'llm' || span.runType === 'embedding') {
    return {
      usageMetadata: usageObject(attributes, (keys) => keys, true),
      aggregatedUsage: usageObject(attributes, aggregatedKeys, false),
    };
  }
  return {
    usageMetadata: undefined,
    aggregatedUsage: usageObject(attributes, (keys) => [...aggregatedKeys(keys), ...keys], true),
  };
}

/** `own`: costs and detail objects, which have no aggregated spelling, are read too. */
function usageObject(
  attributes: Attributes,
  candidates: (keys: readonly string[]) => readonly string[],
  own: boolean,
): JsonObject | undefined {
  const count = (keys: readonly string[]): number | undefined =>
    candidates(keys)
      .map((key) => countOf(attributes.raw(key)))
      .find((value) => value !== undefined);

  let input = count(counts.input_tokens);
  const output = count(counts.output_tokens);
  let total = count(counts.total_tokens);

  const inputDetail = new Map<string, number>();
  const outputDetail = new Map<string, number>();
  const details = [
    [inputDetail, inputDetails, inputDetailNames, 'gen_ai.usage.input_token_details'],
    [outputDetail, outputDetails, outputDetailNames, 'gen_ai.usage.output_token_details'],
  ] as const;
  for (const [target, table, names, objectKey] of details) {
    for (const [name, value] of own ? detailsObject(attributes.raw(objectKey), names) : []) target.set(name, value);
    for (const [name, keys] of Object.entries(table)) {
      const value = count(keys);
      if (value !== undefined) target.set(name, value);
    }
  }

  const anthropic = own ? anthropicCache(attributes) : undefined;
  if (anthropic !== undefined) {
    for (const name of ['cache_read', 'cache_creation'] as const) {
      const value = anthropic[name];
      if (value !== undefined && !inputDetail.has(name)) inputDetail.set(name, value);
    }
    if (input !== undefined) {
      input += (inputDetail.get('cache_read') ?? 0) + (inputDetail.get('cache_creation') ?? 0);
      total = input + (output ?? 0);
    }
  }
  total ??= input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0);

  const usage = object(
    ['input_tokens', input],
    ['output_tokens', output],
    ['total_tokens', total],
    ['input_token_details', someOf(inputDetail)],
    ['output_token_details', someOf(outputDetail)],
  );
  if (own) {
    for (const [name, keys] of Object.entries(costs)) setCost(usage, name, attributes, keys);
    const nested = [
      ['input_cost_details', inputCostDetails],
      ['output_cost_details', outputCostDetails],
    ] as const;
    for (const [name, table] of nested) {
      const target = object();
      for (const [detail, keys] of Object.entries(table)) setCost(target, detail, attributes, keys);
      if (target.size > 0) usage.set(name, target);
    }
  }
  return usage.size === 0 ? undefined : usage;
}

function someOf(details: ReadonlyMap<string, number>): JsonObject | undefined {
  return details.size === 0 ? undefined : object(...details);
}

function setCost(target: JsonObject, name: string, attributes: Attributes, keys: readonly string[]): void {
  const value = keys.map((key) => costOf(attributes.raw(key))).find((cost) => cost !== undefined);
  if (value !== undefined) target.set(name, value);
}

/** int64, integral double, or digits; not negative, at most 2^53 - 1. */
export function countOf(value: Json | undefined): number | undefined {
  const text = value instanceof Num ? value.text : typeof value === 'string' && /^\d+$/.test(value) ? value : '';
  const number = Number(text);
  return text !== '' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function costOf(value: Json | undefined): Num | undefined {
  if (value instanceof Num) return Number(value.text) >= 0 ? value : undefined;
  return typeof value === 'string' && /^(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? new Num(value) : undefined;
}

function detailsObject(value: Json | undefined, names: Readonly<Record<string, string>>): Map<string, number> {
  const found = new Map<string, number>();
  const parsed = typeof value === 'string' ? readLenient(value) : value;
  if (!isObject(parsed)) return found;
  for (const [from, to] of Object.entries(names)) {
    const count = countOf(parsed.get(from));
    if (count !== undefined && !found.has(to)) found.set(to, count);
  }
  return found;
}

/** AI SDK 4 and 5 leave cached tokens out of Anthropic's input count. */
function anthropicCache(attributes: Attributes): { cache_read?: number; cache_creation?: number } | undefined {
  const document = J(attributes.raw('ai.response.providerMetadata'));
  const metadata = document?.kind === 'json' ? document.value : undefined;
  const anthropic = isObject(metadata) ? metadata.get('anthropic') : undefined;
  if (!isObject(anthropic) || attributes.hasPrefix('ai.usage.inputTokenDetails.')) return undefined;
  const read = countOf(anthropic.get('cacheReadInputTokens'));
  const creation = countOf(anthropic.get('cacheCreationInputTokens'));
  return {
    ...(read === undefined ? {} : { cache_read: read }),
    ...(creation === undefined ? {} : { cache_creation: creation }),
  };
}
