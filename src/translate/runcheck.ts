/**
 * Holds what a converter returned against what a run may be. Strict, because whoever writes a converter learns from the
 * log what is wrong, and from a backend's refusal of a whole batch would not.
 */
import { types } from 'node:util';
import type { ConverterRun } from './converter.ts';
import { RUN_TYPE_NAMES } from './span.ts';

const STATUSES = ['success', 'error', 'pending'];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const BAD_ATTACHMENT_NAME = /[."\u0000-\u001f\u007f]/;
const MIME_TYPE = /^[\x20-\x7e]{1,255}$/;
const MAX_NAME_BYTES = 255;

/** What is wrong with a member's value, or null. */
type Check = (value: unknown) => string | null;

const text: Check = (value) => (typeof value === 'string' ? null : 'must be a string');
const fullText: Check = (value) => (typeof value === 'string' && value !== '' ? null : 'must be a string, not empty');
const oneOf = (allowed: readonly string[]): Check => {
  return (value) => (allowed.includes(value as string) ? null : `must be one of ${allowed.join(', ')}`);
};
const uuid: Check = (value) => (typeof value === 'string' && UUID.test(value) ? null : 'must be a UUID');
const object: Check = (value) => (isPlain(value) ? null : 'must be a plain object');
const listOf = (isItem: (item: unknown) => boolean, items: string): Check => {
  return (value) => (Array.isArray(value) && value.every(isItem) ? null : `must be an array of ${items}`);
};

const REQUIRED: Readonly<Record<string, Check>> = {
  name: fullText,
  run_type: oneOf(RUN_TYPE_NAMES),
  status: oneOf(STATUSES),
};
const OPTIONAL: Readonly<Record<string, Check>> = {
  session_name: fullText,
  session_id: uuid,
  tags: listOf((item) => typeof item === 'string', 'strings'),
  reference_example_id: uuid,
  inputs: object,
  outputs: object,
  events: listOf(isPlain, 'plain objects'),
  extra: object,
  error: text,
  serialized: object,
  attachments: checkAttachments,
};
const MEMBERS = [...Object.keys(REQUIRED), ...Object.keys(OPTIONAL)];

/** Throws a TypeError that says what is wrong. */
export function checkRun(result: unknown): ConverterRun {
  if (isThenable(result)) {
    // Its outcome is not waited for: the converter has failed already, and must not take the thread along.
    Promise.resolve(result).catch(() => undefined);
    throw new TypeError('the converter returned a promise; it must be synchronous');
  }
  if (!isPlain(result)) {
    throw new TypeError(`the converter returned ${nameOf(result)}; it must return a run, or null to drop the span`);
  }
  for (const [member, check] of Object.entries(REQUIRED)) refuse(member, check(result[member]));
  for (const [member, check] of Object.entries(OPTIONAL)) {
    const value = result[member];
    if (value !== undefined && value !== null) refuse(member, check(value));
  }
  for (const member of Object.keys(result)) {
    if (!MEMBERS.includes(member)) refuse(member, `is not a converter's to set; there are ${MEMBERS.join(', ')}`);
  }
  return result as unknown as ConverterRun;
}

function refuse(member: string, problem: string | null): void {
  if (problem !== null) throw new TypeError(`the converter returned a run whose ${JSON.stringify(member)} ${problem}`);
}

function checkAttachments(value: unknown): string | null {
  if (!isPlain(value)) return 'must be a plain object';
  for (const [name, attachment] of Object.entries(value)) {
    const shown = JSON.stringify(name);
    if (name === '' || BAD_ATTACHMENT_NAME.test(name) || Buffer.byteLength(name) > MAX_NAME_BYTES) {
      return `has an attachment of a name that cannot be: ${shown}`;
    }
    const [mimeType, data] = Array.isArray(attachment) ? (attachment as unknown[]) : [];
    if (typeof mimeType !== 'string' || !MIME_TYPE.test(mimeType) || !types.isUint8Array(data)) {
      return `must be MIME type and bytes for ${shown}`;
    }
  }
  return null;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Of any realm: what JSON makes an object of.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

function nameOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' || value === undefined ? Object.prototype.toString.call(value) : `a ${typeof value}`;
}
