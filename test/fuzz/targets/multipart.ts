/** The embedded backend's reader of forms: total over all bytes, and what it reads can be written and read again. */
import assert from 'node:assert/strict';
import { jsonPart, writeMultipart } from '../../../src/backend/form.ts';
import { boundaryOf, readMultipart, type MultipartOutcome } from '../../../src/backend/multipart.ts';
import type { Target } from '../target.ts';

const LIMITS = { maxPartCount: 50, maxHeaderBytes: 1024 };
const FORM = 'multipart/form-data; boundary=';

/** First line: the content type. The rest: the body. */
export function open(): Target {
  return {
    maxInputBytes: 4096,
    seeds: () => [
      Buffer.from(`${FORM}B\r\n${Buffer.from(writeMultipart([jsonPart('post.1', { a: 1 })], 'B')).toString()}`),
      Buffer.from(`${FORM}"a b"; x="\\""\n--a b\r\nContent-Type: a/b; length=1\r\n\r\nx\r\n--a b--`),
    ],
    dictionary: [
      ...['\r\n--', '--\r\n', '--B', 'B', '\r\n\r\n', 'boundary=', FORM, 'Content-Disposition: form-data; name="'],
      ...[
        'Content-Type: application/json\r\n',
        'Content-Length: 0\r\n',
        '; length=',
        '; name="',
        '; filename="',
        '\\"',
      ],
    ],
    mutators: [],
    run: (input) => {
      const line = input.indexOf(10);
      const contentType = Buffer.from(input.subarray(0, Math.max(0, line))).toString('latin1');
      const boundary = boundaryOf(contentType);
      if (boundary === null) return;
      assert.ok(boundary.length > 0 && boundary.length <= 70);
      const body = input.slice(line + 1);
      const outcome = readMultipart(body, boundary, LIMITS);
      if (outcome.kind === 'unreadable') return assert.ok(outcome.message !== '' && outcome.message.length < 10_000);
      for (const { bytes } of outcome.parts) assert.equal(bytes.buffer, body.buffer, 'a view of the body');
      // A line break in a name cannot be written in a header.
      if (outcome.parts.some(({ name }) => /[\r\n]/.test(name))) return;
      assert.deepEqual(plain(readMultipart(writeMultipart(outcome.parts, boundary), boundary, WIDE)), plain(outcome));
    },
  };
}

/** The writer's headers may be longer than those that were read. */
const WIDE = { ...LIMITS, maxHeaderBytes: 8192 };

function plain(outcome: MultipartOutcome): unknown {
  if (outcome.kind === 'unreadable') return outcome;
  return outcome.parts.map(({ name, mediaType, bytes }) => ({
    name,
    mediaType,
    bytes: Buffer.from(bytes).toString('latin1'),
  }));
}
