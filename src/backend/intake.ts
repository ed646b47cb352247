/**
 * From the parts of an upload to the operations it asks for, every one checked; the first defect refuses the upload as a
 * whole. In: parts (views into the upload's bytes). Out: parsed values and their JSON text; attachments stay views.
 *
 * | Part                       | Content                                                                       |
 * | -------------------------- | ----------------------------------------------------------------------------- |
 * | `post.{id}`, `patch.{id}`  | a JSON object: the run, created or updated; before the other parts of its run |
 * | `….inputs`, `….outputs`, `….extra`, `….serialized` | a JSON object                                         |
 * | `….events`                 | a JSON array of objects                                                       |
 * | `….error`                  | a JSON string                                                                 |
 * | `attachment.{id}.{name}`   | bytes of any type                                                             |
 * | `feedback.{id}`            | a JSON object                                                                 |
 */
import { isUtf8 } from 'node:buffer';
import type { Part } from './multipart.ts';
import { isUuid } from './order.ts';
import {
  checkDocument,
  checkOperation,
  DOCUMENT_FIELDS,
  type DocumentField,
  isObject,
  type JsonText,
  readRecord,
  refusable,
  type Refusal,
  Refused,
  type RunOperation,
  textOf,
  timeOf,
  unprocessable,
  uuidOf,
} from './record.ts';

export interface Attachment {
  readonly runId: string;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface Feedback {
  readonly id: string;
  readonly runId: string | null;
  readonly text: string;
}

export interface Upload {
  readonly kind: 'upload';
  readonly operations: RunOperation[];
  readonly attachments: Attachment[];
  readonly feedback: Feedback[];
}

export interface IntakeSettings {
  readonly maxAttachmentBytes: number;
  readonly startTimeToleranceUs: number;
}

const FIELDS: ReadonlySet<string> = new Set(DOCUMENT_FIELDS);

export function readUpload(parts: readonly Part[], settings: IntakeSettings): Upload | Refusal {
  return refusable(() => {
    const upload: Upload = { kind: 'upload', operations: [], attachments: [], feedback: [] };
    const open = new Map<string, RunOperation>();
    for (const part of parts) readPart(part, upload, open, settings);
    for (const operation of upload.operations) checkOperation(operation, settings.startTimeToleranceUs);
    return upload;
  });
}

function readPart(part: Part, upload: Upload, open: Map<string, RunOperation>, settings: IntakeSettings): void {
  const [op, uuid, field, extra] = part.name.split('.');
  const id = uuid?.toLowerCase() ?? '';
  if (!isUuid(id) || extra !== undefined) unprocessable(`invalid part name "${part.name}"`);
  if (op === 'attachment' && field !== undefined && field !== '') {
    if (part.bytes.byteLength > settings.maxAttachmentBytes) {
      throw new Refused('too-large', `attachment "${part.name}" is larger than ${settings.maxAttachmentBytes} bytes`);
    }
    upload.attachments.push({ runId: id, name: field, mediaType: part.mediaType, bytes: part.bytes });
    return;
  }
  if (part.mediaType !== 'application/json') {
    unprocessable(`part "${part.name}" must be application/json, not ${part.mediaType}`);
  }
  if (op === 'feedback' && field === undefined) {
    upload.feedback.push(readFeedback(id, part));
    return;
  }
  if (op !== 'post' && op !== 'patch') return unprocessable(`invalid part name "${part.name}"`);
  const key = `${op}.${id}`;
  if (field === undefined) {
    const operation = readRecord(op, id, readJson(part));
    upload.operations.push(operation);
    open.set(key, operation);
    return;
  }
  if (!FIELDS.has(field)) unprocessable(`invalid part name "${part.name}"`);
  const operation = open.get(key) ?? unprocessable(`part "${part.name}" comes before its run`);
  operation.documents[field as DocumentField] = checkDocument(field as DocumentField, readJson(part), part.name);
}

function readJson(part: Part): JsonText {
  if (!isUtf8(part.bytes)) unprocessable(`part "${part.name}" is not UTF-8`);
  const { buffer, byteOffset, byteLength } = part.bytes;
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
  try {
    return { text, value: JSON.parse(text) };
  } catch (error) {
    return unprocessable(`part "${part.name}" is not JSON: ${(error as Error).message}`);
  }
}

function readFeedback(id: string, part: Part): Feedback {
  const { text, value } = readJson(part);
  const where = `feedback ${id}`;
  if (!isObject(value)) return unprocessable(`part "${part.name}" must be an object`);
  if ((uuidOf(value, 'id', where) ?? id) !== id) unprocessable(`${where}: id is not the one of the part's name`);
  if ((textOf(value, 'key', where) ?? '') === '') unprocessable(`${where}: key is required`);
  timeOf(value, 'created_at', where);
  timeOf(value, 'modified_at', where);
  return { id, runId: uuidOf(value, 'run_id', where), text };
}
