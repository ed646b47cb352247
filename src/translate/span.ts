/** The span in translation: what conventions read. One object, reused for every span of a decoder. */
import type { Attributes } from './attributes.ts';
import type { NodeWord } from './document.ts';
import type { Writer } from './writer.ts';

export const RunType = { Tool: 0, Chain: 1, Llm: 2, Retriever: 3, Embedding: 4, Prompt: 5, Parser: 6 } as const;
export const RUN_TYPE_NAMES = ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'] as const;

/** What an event is for. */
export const EventKind = {
  Other: 0,
  Exception: 1,
  NewToken: 2,
  OperationDetails: 3,
  ContentPrompt: 4,
  ContentCompletion: 5,
  Choice: 6,
  SystemMessage: 7,
  UserMessage: 8,
  AssistantMessage: 9,
  ToolMessage: 10,
  DeveloperMessage: 11,
} as const;

/** From here on an event is a message of a conversation. */
export const FIRST_MESSAGE_KIND: number = EventKind.SystemMessage;

export interface Span {
  readonly attributes: Attributes;
  /** The attributes of the event scanned last; see `EventReader.scan`. */
  readonly event: Attributes;
  runType: number;
  /** Marks of all attributes, see keys.ts. */
  marks: number;
  /** Groups of all attributes, see keys.ts. */
  groups: number;
  /** Mask of indexed families present. */
  families: number;
  eventCount: number;
  /** Kinds present among the events, as bits (1 << kind). */
  eventKinds: number;
  /** Set by whoever writes outputs that bring a `usage_metadata` of their own. */
  outputsHaveUsage: boolean;
  /** The rendered `usage_metadata`; length 0: none. */
  usageAt: number;
  usageLength: number;
  /** Finish reasons from `gen_ai.response.finish_reasons` and its singular: arrays, or 0. */
  reasons: NodeWord;
  reason: NodeWord;
  reasonsKnown: boolean;
}

/** A convention's way to fill one side of a run: writes a JSON object and says true, or writes nothing. */
export type Source = (span: Span, out: Writer) => boolean;
