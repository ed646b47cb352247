/**
 * The attribute keys that conventions declare. Every key gets an id; the kernel finds a key's id by its bytes and notes
 * the attribute's place in a table by id, so that looking at an attribute later costs two loads and no string.
 *
 * A key may hold `#` for a run of digits between dots (`gen_ai.prompt.#.role`): such attributes are noted in a list,
 * with their numbers. A prefix (`langsmith.metadata.`) notes every attribute behind it that is not a declared key.
 */
import { Fault } from '../core/outcome.ts';
import type { Kernel } from './kernel/kernel.ts';

/** Id of a declared key, dense from 0. */
export type Key = number;

/**
 * Marks: what the presence of an attribute says about its span, whether its key is declared or not. All marks of a
 * span's attributes are or-ed by the kernel.
 */
export const Mark = {
  /** GenAI at all (FILTER_NON_GENAI). */
  GenAi: 1 << 12,
  /** Something only a model call has. */
  LlmKey: 1 << 13,
  Retrieval: 1 << 14,
  Embedding: 1 << 15,
  /** `ai.usage.inputTokenDetails.`: an AI SDK whose input counts include cached tokens. */
  AiInputDetails: 1 << 16,
  /** Families, to pass over their tables at once. */
  Ai: 1 << 17,
  Llm: 1 << 18,
  GenAiKey: 1 << 19,
  Traceloop: 1 << 20,
  OpenInference: 1 << 21,
  Pydantic: 1 << 22,
  Mcp: 1 << 23,
  Langsmith: 1 << 24,
} as const;

const MARKED_PREFIXES: readonly (readonly [string, number])[] = [
  ['gen_ai.', Mark.GenAi | Mark.GenAiKey],
  ['llm.', Mark.GenAi | Mark.Llm],
  ['ai.', Mark.GenAi | Mark.Ai],
  ['langsmith.', Mark.GenAi | Mark.Langsmith],
  ['openinference.', Mark.GenAi | Mark.OpenInference],
  ['traceloop.', Mark.GenAi | Mark.Traceloop],
  ['pydantic_ai.', Mark.GenAi | Mark.Pydantic],
  ['mcp.', Mark.GenAi | Mark.Mcp],
  ['gen_ai.prompt', Mark.LlmKey],
  ['gen_ai.completion', Mark.LlmKey],
  ['gen_ai.usage.', Mark.LlmKey],
  ['gen_ai.input.messages', Mark.LlmKey],
  ['gen_ai.output.messages', Mark.LlmKey],
  ['llm.input_messages.', Mark.LlmKey],
  ['llm.output_messages.', Mark.LlmKey],
  ['llm.prompts.', Mark.LlmKey],
  ['llm.choices.', Mark.LlmKey],
  ['llm.token_count.', Mark.LlmKey],
  ['llm.usage.', Mark.LlmKey],
  ['retrieval.documents.', Mark.Retrieval],
  ['gen_ai.retrieval.', Mark.Retrieval],
  ['embedding.', Mark.Embedding],
  ['ai.usage.inputTokenDetails.', Mark.AiInputDetails],
];

/**
 * Groups: the tables that a key is a candidate in. A span without any attribute of a group passes that table over.
 */
export const Group = {
  Usage: 1 << 0,
  InputDetails: 1 << 1,
  OutputDetails: 1 << 2,
  Costs: 1 << 3,
  Aggregated: 1 << 4,
  Parameters: 1 << 5,
  Documents: 1 << 6,
  Tools: 1 << 7,
  Derived: 1 << 8,
  Structured: 1 << 9,
  Legacy: 1 << 10,
  ToolCall: 1 << 11,
  Retrieval: 1 << 12,
  Reranker: 1 << 13,
  Value: 1 << 14,
  Entity: 1 << 15,
  Conversation: 1 << 16,
  Instructions: 1 << 17,
  Tags: 1 << 18,
  Control: 1 << 19,
  Serialized: 1 << 20,
} as const;

const INDEXED_BIT = 1 << 30;
const MAX_KEYS = 1 << 12;
const TABLE_ENTRIES = 4096;
const MAX_PREFIXES = 64;
const ENTRY_BYTES = 16;

export interface Keys {
  /** Declares (or finds) an exact key, a candidate in the tables of the groups. */
  key(name: string, groups?: number): Key;
  /** As `key`, for an attribute that only events have: on a span it is an unknown one. */
  eventKey(name: string): Key;
  /** Whether `key` or `indexed` declared the name. */
  knows(name: string): boolean;
  /** Declares (or finds) a key with `#` for numbers. */
  indexed(pattern: string): Key;
  /** Declares (or finds) a prefix. */
  prefix(name: string): number;
  readonly count: number;
}

/** Prefixes of attribute keys, event names and span names that make a span GenAI. */
export const GENAI_PREFIXES = MARKED_PREFIXES.filter(([, marks]) => (marks & Mark.GenAi) !== 0).map(([name]) => name);

const marksOf = (key: string): number =>
  MARKED_PREFIXES.reduce((marks, [prefix, own]) => (key.startsWith(prefix) ? marks | own : marks), 0);

export class KeyTable implements Keys {
  readonly #kernel: Kernel;
  readonly #ids = new Map<string, number>();
  readonly #prefixes = new Map<string, number>();
  readonly #table: number;
  readonly #prefixTable: number;
  readonly #groups: number;
  readonly #starts: number;
  readonly #scratch: number;
  #entries = 0;
  #sealed = false;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
    this.#table = kernel.allocate(TABLE_ENTRIES * ENTRY_BYTES);
    this.#prefixTable = kernel.allocate(MAX_PREFIXES * ENTRY_BYTES);
    this.#groups = kernel.allocate(MAX_KEYS * 4);
    this.#starts = kernel.allocate(256);
    this.#scratch = kernel.allocate(256);
    kernel.onRenew(() => {
      this.#configure();
    });
  }

  get count(): number {
    return this.#ids.size;
  }

  key(name: string, groups = 0): Key {
    this.#known.add(name);
    const key = this.#declare(name, 0);
    const word = (this.#groups >> 2) + key;
    this.#kernel.u32[word] = ((this.#kernel.u32[word] ?? 0) | groups) >>> 0;
    return key;
  }

  eventKey(name: string): Key {
    return this.#declare(name, 0);
  }

  knows(name: string): boolean {
    return this.#known.has(name);
  }
  readonly #known = new Set<string>();

  indexed(pattern: string): Key {
    return this.#declare(pattern, INDEXED_BIT);
  }

  prefix(name: string): number {
    const known = this.#prefixes.get(name);
    if (known !== undefined) return known;
    this.#assertOpen(name);
    const id = this.#prefixes.size;
    this.#prefixes.set(name, id);
    return id;
  }

  #assertOpen(name: string): void {
    if (this.#sealed) throw new Fault(`key ${name} declared after the table was sealed`);
  }

  #declare(name: string, bits: number): Key {
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    this.#assertOpen(name);
    const id = this.#ids.size;
    this.#ids.set(name, id);
    const literal = this.#kernel.literal(name);
    if (id >= MAX_KEYS || ++this.#entries > TABLE_ENTRIES / 2)
      throw new Fault('more attribute keys than the table takes');
    // only now: literal() may have renewed the views
    const { x, u32 } = this.#kernel;
    const hash = x.hash(literal.at, literal.length) >>> 0;
    let slot = hash & (TABLE_ENTRIES - 1);
    const wordOf = (s: number): number => (this.#table + s * ENTRY_BYTES) >> 2;
    while (u32[wordOf(slot) + 1] !== 0) slot = (slot + 1) & (TABLE_ENTRIES - 1);
    const word = wordOf(slot);
    u32[word] = hash;
    u32[word + 1] = (id | bits | marksOf(name)) + 1;
    u32[word + 2] = literal.at;
    u32[word + 3] = literal.length;
    return id;
  }

  /** Ends declaration and hands the tables to the kernel. */
  seal(): void {
    this.#sealed = true;
    // Longest first, should one declared prefix begin another.
    const names = new Set([...this.#prefixes.keys(), ...MARKED_PREFIXES.map(([name]) => name)]);
    const all = [...names].sort((a, b) => b.length - a.length);
    if (all.length > MAX_PREFIXES) throw new Fault('more attribute prefixes than the table takes');
    all.forEach((name, index) => {
      const literal = this.#kernel.literal(name);
      const word = (this.#prefixTable + index * ENTRY_BYTES) >> 2;
      const { i32, u8 } = this.#kernel;
      i32[word] = literal.at;
      i32[word + 1] = literal.length;
      i32[word + 2] = this.#prefixes.get(name) ?? -1;
      i32[word + 3] = marksOf(name);
      u8[this.#starts + name.charCodeAt(0)] = 1;
    });
    this.#prefixCount = all.length;
    this.#configure();
  }
  #prefixCount = 0;

  #configure(): void {
    this.#kernel.x.configureKeys(
      this.#table,
      TABLE_ENTRIES - 1,
      this.#prefixTable,
      this.#prefixCount,
      this.#starts,
      this.#groups,
      this.#scratch,
    );
  }
}
