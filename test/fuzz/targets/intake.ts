/** Whole uploads into the embedded backend's store: taken or refused with a reason, all or nothing, never thrown at. */
import assert from 'node:assert/strict';
import { jsonPart, writeMultipart } from '../../../src/backend/form.ts';
import { readUpload } from '../../../src/backend/intake.ts';
import { readMultipart } from '../../../src/backend/multipart.ts';
import { listRuns } from '../../../src/backend/query.ts';
import { backendSettings } from '../../../src/backend/settings.ts';
import { openStore } from '../../../src/backend/store.ts';
import { makeRun } from '../../backend-runs.ts';
import { jsonMutators } from '../jsontree.ts';
import type { Target } from '../target.ts';

const BOUNDARY = 'B';
const LIMITS = { maxPartCount: 50, maxHeaderBytes: 1024 };

/** The body of an upload; the lengths that its parts declare are set right first, so that more than lengths is tried. */
export function open(): Target {
  const settings = backendSettings({ maxTraceCount: 20 });
  const store = openStore(settings);
  return {
    maxInputBytes: 4096,
    seeds: () => {
      const root = makeRun();
      const child = makeRun({ parent: root });
      return [
        writeMultipart([jsonPart(`post.${root.id}`, root)], BOUNDARY),
        writeMultipart(
          [
            jsonPart(`post.${root.id}`, root),
            jsonPart(`post.${root.id}.inputs`, { q: 'x' }),
            jsonPart(`post.${root.id}.events`, [{ name: 'e', time: '2026-01-01T00:00:00Z' }]),
            jsonPart(`patch.${child.id}`, child),
            { name: `attachment.${root.id}.a`, mediaType: 'image/png', bytes: Buffer.from('x') },
            jsonPart(`feedback.${child.id}`, { run_id: root.id, key: 'k', score: 1 }),
          ],
          BOUNDARY,
        ),
      ];
    },
    dictionary: ['post.', 'patch.', '.inputs', '.outputs', '.extra', '.events', '.error', '.serialized', 'attachment.'],
    mutators: jsonMutators,
    run: (input) => {
      const form = readMultipart(withLengths(input), BOUNDARY, LIMITS);
      if (form.kind === 'unreadable') return;
      const upload = readUpload(form.parts, settings);
      if (upload.kind !== 'upload') return assert.ok(upload.message !== '');
      const outcome = store.write('t', upload);
      assert.ok(listRuns(store.database, {}, { limit: 3 }).items.length <= 3);
      if ('message' in outcome) assert.ok(outcome.message !== '');
    },
    close: async () => store.close(),
  };
}

function withLengths(input: Uint8Array): Uint8Array {
  const text = Buffer.from(input).toString('latin1');
  const parts = text.split(`\r\n--${BOUNDARY}`).map((part) => {
    const headEnd = part.indexOf('\r\n\r\n');
    if (headEnd < 0) return part;
    const lengthBytes = part.length - headEnd - 4;
    return (
      part.slice(0, headEnd).replace(/Content-Length: [^\r]*/i, `Content-Length: ${lengthBytes}`) + part.slice(headEnd)
    );
  });
  return new Uint8Array(Buffer.from(parts.join(`\r\n--${BOUNDARY}`), 'latin1'));
}
