/**
 * Attributes that steer instead of describing: `langsmith.is_root`, ids given by the emitter (to link spans into traces
 * of the backend's own SDKs), attachments, the serialized callable. All rare, so strings are made freely.
 */
import type { Attributes } from './attributes.ts';
import { RecordFlag } from '../core/record.ts';
import { base64 } from './base64.ts';
import { Node } from './document.ts';
import { ValueType } from './kernel/kernel.ts';
import { Group } from './keys.ts';
import type { Key } from './keys.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Writer } from './writer.ts';

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const SEGMENT = '\\d{8}T\\d{12}Z[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const DOTTED_ORDER = new RegExp(`^${SEGMENT}(\\.${SEGMENT})*$`);
/** A multipart part is named by it: no dots, quotes or control characters. */
const BAD_PART_NAME = /[."\u0000-\u001f\u007f]/;
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;
const MAX_NAME_BYTES = 255;

export interface Control {
  isForcedRoot(attributes: Attributes): boolean;
  /** Writes the Overrides part; returns its flags. */
  writeOverrides(attributes: Attributes, out: Writer): number;
  writeSerialized(attributes: Attributes, out: Writer): void;
  writeAttachments(span: Span, out: Writer): void;
}

export function control(box: Toolbox): Control {
  const { kernel, keys, docs, values, lit } = box;
  const key = {
    roots: [keys.key('langsmith.is_root', Group.Control), keys.key('langsmith.root_span', Group.Control)],
    runId: keys.key('langsmith.span.id', Group.Control),
    parentId: keys.key('langsmith.span.parent_id', Group.Control),
    traceId: keys.key('langsmith.trace.id', Group.Control),
    dottedOrder: keys.key('langsmith.span.dotted_order', Group.Control),
    attachments: keys.key('langsmith.attachments', Group.Control),
  };
  const serialized = ['name', 'signature', 'doc'].map((name) => ({
    key: keys.key(`gen_ai.serialized.${name}`, Group.Serialized),
    is: lit(`"${name}":`),
  }));
  const trueText = lit('true');
  const name = lit('name');
  const content = lit('content');
  const mimeType = lit('mime_type');

  const textOf = (attributes: Attributes, source: Key): string | null =>
    attributes.type(source) === ValueType.String
      ? Buffer.from(kernel.u8.subarray(attributes.a(source), attributes.a(source) + attributes.b(source))).toString(
          'utf8',
        )
      : null;

  function writeUuid(attributes: Attributes, source: Key, flag: number, out: Writer): number {
    if (attributes.b(source) !== 36) return 0;
    const value = textOf(attributes, source);
    if (value === null || !UUID.test(value)) return 0;
    out.room(16);
    kernel.u8.set(Buffer.from(value.replaceAll('-', ''), 'hex'), out.pos);
    out.pos += 16;
    return flag;
  }

  const stringMember = (item: number, member: typeof name): string | null => {
    const node = docs.member(item, member);
    return node !== 0 && docs.type(node) === Node.String ? (JSON.parse(docs.text(node)) as string) : null;
  };

  return {
    isForcedRoot: (attributes) => {
      for (const root of key.roots) {
        const type = attributes.type(root);
        if (type === ValueType.Bool && attributes.a(root) !== 0) return true;
        if (type === ValueType.String && attributes.b(root) === trueText.length) {
          if (kernel.x.equals(attributes.a(root), trueText.at, trueText.length) !== 0) return true;
        }
      }
      return false;
    },

    writeOverrides: (attributes, out) => {
      let flags = 0;
      if (attributes.has(key.runId)) flags |= writeUuid(attributes, key.runId, RecordFlag.HasRunId, out);
      if (attributes.has(key.parentId)) flags |= writeUuid(attributes, key.parentId, RecordFlag.HasParentRunId, out);
      if (attributes.has(key.traceId)) flags |= writeUuid(attributes, key.traceId, RecordFlag.HasTraceId, out);
      if (!attributes.has(key.dottedOrder)) return flags;
      const dotted = textOf(attributes, key.dottedOrder);
      if (dotted === null || !DOTTED_ORDER.test(dotted)) return flags;
      out.text(dotted);
      return flags | RecordFlag.HasDottedOrder;
    },

    writeSerialized: (attributes, out) => {
      const start = out.pos;
      out.byte(OPEN_OBJECT);
      for (const member of serialized) {
        const type = attributes.type(member.key);
        if (type === ValueType.Absent) continue;
        if (type === ValueType.String && attributes.b(member.key) === 0) continue;
        out.literal(member.is);
        values.write(type, attributes.a(member.key), attributes.b(member.key), out);
        out.comma();
      }
      if (out.pos === start + 1) out.pos = start;
      else out.close(CLOSE_OBJECT);
    },

    writeAttachments: (span, out) => {
      const { attributes } = span;
      if (!attributes.has(key.attachments)) return;
      if (values.loadKey(attributes, key.attachments) !== Loaded.Document) return;
      const list = values.node;
      if (docs.type(list) !== Node.Array) return;
      const found = new Map<string, { mime: Buffer; data: Uint8Array }>();
      const stop = docs.next(list);
      for (let item = docs.first(list); item < stop; item = docs.next(item)) {
        const partName = stringMember(item, name);
        const text = stringMember(item, content);
        const data = text === null ? null : base64(text);
        if (partName === null || partName === '' || data === null) continue;
        if (BAD_PART_NAME.test(partName) || Buffer.byteLength(partName) > MAX_NAME_BYTES) continue;
        const mime = stringMember(item, mimeType) ?? '';
        found.delete(partName);
        found.set(partName, {
          mime: Buffer.from(PRINTABLE.test(mime) ? mime : 'application/octet-stream'),
          data,
        });
      }
      for (const [partName, { mime, data }] of found) {
        const nameBytes = Buffer.from(partName);
        const lengths = Buffer.alloc(8);
        lengths.writeUInt16LE(nameBytes.length, 0);
        lengths.writeUInt16LE(mime.length, 2);
        lengths.writeUInt32LE(data.length, 4);
        for (const bytes of [lengths, nameBytes, mime, data]) {
          out.room(bytes.length);
          kernel.u8.set(bytes, out.pos);
          out.pos += bytes.length;
        }
      }
    },
  };
}
