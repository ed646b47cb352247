/** A record as a plain object: what one span becomes before its place in the tree is known. */
import { canonical, fromPlain, type Json, type JsonObject } from './json.ts';

export interface RecordView {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly startUs: number;
  readonly endUs: number | null;
  readonly flags: { forcedRoot: boolean; notEnded: boolean; genAi: boolean };
  readonly overrides: { runId?: string; parentRunId?: string; traceId?: string; dottedOrder?: string };
  readonly head: JsonObject;
  readonly inputs?: JsonObject;
  readonly outputs?: JsonObject;
  readonly events?: Json[];
  readonly extra?: JsonObject;
  readonly error?: string;
  readonly serialized?: JsonObject;
  readonly attachments?: { name: string; mimeType: string; base64: string }[];
}

export interface Translation {
  readonly records: RecordView[];
  readonly rejectedCount: number;
}

/** Equal results, equal texts. */
export function textOf(value: unknown): string {
  return canonical(fromPlain(value));
}
