/** What a part of a message can be, and where a message can stand. */

/** Kinds of a part. */
export const PartKind = {
  Skip: 0,
  Text: 1,
  Reasoning: 2,
  ToolCall: 3,
  ToolResponse: 4,
  ImageUrl: 5,
  ImageData: 6,
  AudioUrl: 7,
  AudioData: 8,
  File: 9,
  Pass: 10,
  BareText: 11,
  BedrockReasoning: 12,
} as const;

/** Where a message stands: a choice's message leaves unknown content out and keeps tool responses as blocks. */
export interface Placement {
  readonly inChoice: boolean;
  /** On a tool message `id` is the id of the call that it answers. */
  readonly idIsCall: boolean;
}
export const IN_MESSAGES: Placement = { inChoice: false, idIsCall: false };
export const IN_CHOICE: Placement = { inChoice: true, idIsCall: false };
export const IN_EVENT: Placement = { inChoice: false, idIsCall: true };
