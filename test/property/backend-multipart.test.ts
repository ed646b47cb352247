/** The multipart reader against random forms and against arbitrary bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { writeMultipart } from '../../src/backend/form.ts';
import { boundaryOf, readMultipart } from '../../src/backend/multipart.ts';

const LIMITS = { maxPartCount: 50, maxHeaderBytes: 4096 };

/** Short, so that payloads come close to containing it. */
const boundaries = fc
  .string({ unit: fc.constantFrom('a', 'b', '-', "'", ' '), minLength: 1, maxLength: 6 })
  .filter((text) => !text.endsWith(' '));

const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  // Made of what delimiters are made of.
  fc
    .array(fc.constantFrom('\r\n', '--', 'a', 'b', ' ', '\r', '\n', '-'), { maxLength: 60 })
    .map((pieces) => new Uint8Array(Buffer.from(pieces.join('')))),
);

const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((name) => !/[\r\n\0]/.test(name));

const forms = fc.array(
  fc.record({ name: names, mediaType: fc.constantFrom('application/json', 'image/png', 'a/b'), bytes: payloads }),
  { maxLength: 8 },
);

/** Whether a reader would see a delimiter inside of the payload, which no writer may produce. */
function containsDelimiter(bytes: Uint8Array, boundary: string): boolean {
  const escaped = boundary.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`\r\n--${escaped}(--)?[ \t]*(\r\n|$)`).test(`${Buffer.from(bytes).toString('latin1')}\r\n`);
}

test('Reading what was written gives the same parts, whatever their bytes.', () => {
  fc.assert(
    fc.property(forms, boundaries, (parts, boundary) => {
      fc.pre(!parts.some((part) => containsDelimiter(part.bytes, boundary)));
      const outcome = readMultipart(writeMultipart(parts, boundary), boundary, LIMITS);
      assert.ok(outcome.kind === 'parts', outcome.kind === 'unreadable' ? outcome.message : '');
      assert.deepEqual(
        outcome.parts.map(({ name, mediaType, bytes }) => ({ name, mediaType, bytes: Buffer.from(bytes) })),
        parts.map(({ name, mediaType, bytes }) => ({ name, mediaType, bytes: Buffer.from(bytes) })),
      );
    }),
    { numRuns: 1000 },
  );
});

test('Cut anywhere, a form is refused; it never yields other parts.', () => {
  fc.assert(
    fc.property(forms, boundaries, fc.nat(), (parts, boundary, at) => {
      fc.pre(!parts.some((part) => containsDelimiter(part.bytes, boundary)));
      const whole = writeMultipart(parts, boundary);
      // Without the final line break and dash the form is not closed.
      const outcome = readMultipart(whole.subarray(0, at % (whole.byteLength - 2)), boundary, LIMITS);
      assert.equal(outcome.kind, 'unreadable');
    }),
    { numRuns: 1000 },
  );
});

test('Arbitrary bytes and damaged forms never throw, and parts never lie outside of the body.', () => {
  const damaged = fc
    .tuple(forms, boundaries, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }))
    .map(([parts, boundary, changes]) => {
      const bytes = new Uint8Array(writeMultipart(parts, boundary));
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      return { bytes, boundary };
    });
  const arbitrary = fc.record({ bytes: fc.uint8Array({ maxLength: 500 }), boundary: boundaries });
  fc.assert(
    fc.property(fc.oneof(damaged, arbitrary), ({ bytes, boundary }) => {
      const outcome = readMultipart(bytes, boundary, LIMITS);
      if (outcome.kind === 'unreadable') return assert.ok(outcome.message.length < 10_000);
      for (const part of outcome.parts) {
        assert.equal(part.bytes.buffer, bytes.buffer);
        assert.ok(part.bytes.byteOffset >= bytes.byteOffset);
        assert.ok(part.bytes.byteOffset + part.bytes.byteLength <= bytes.byteOffset + bytes.byteLength);
      }
    }),
    { numRuns: 2000 },
  );
});

test('No content type makes the boundary reader throw.', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `multipart/form-data; boundary=${text}`),
      ),
      (text) => {
        const boundary = boundaryOf(text);
        assert.ok(boundary === null || (boundary.length > 0 && boundary.length <= 70));
      },
    ),
  );
});
