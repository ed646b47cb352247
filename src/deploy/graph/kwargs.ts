/** A run's `kwargs` as its worker reads them: what the client asked, merged with assistant and thread. */
import type { JsonObject, JsonText, JsonValue } from '../store/model.ts';

export const STREAM_MODES = [
  'values',
  'updates',
  'messages',
  'messages-tuple',
  'events',
  'debug',
  'tasks',
  'checkpoints',
  'custom',
  'tools',
] as const;
export type StreamMode = (typeof STREAM_MODES)[number];

export interface RunCommand {
  update?: JsonObject | [string, JsonValue][] | null;
  resume?: JsonValue;
  goto?: CommandTarget | CommandTarget[] | null;
}
export type CommandTarget = string | { node: string; input?: JsonValue; args?: JsonValue };

export interface RunKwargs {
  input?: JsonValue;
  command?: RunCommand | null;
  context?: JsonObject | null;
  config?: {
    tags?: string[];
    recursion_limit?: number;
    max_concurrency?: number;
    run_name?: string;
    metadata?: JsonObject;
    configurable?: JsonObject;
  };
  stream_mode?: StreamMode[];
  interrupt_before?: '*' | string[] | null;
  interrupt_after?: '*' | string[] | null;
  subgraphs?: boolean;
  durability?: 'sync' | 'async' | 'exit' | null;
}

export function parseKwargs(json: JsonText): RunKwargs {
  return JSON.parse(json) as RunKwargs;
}
