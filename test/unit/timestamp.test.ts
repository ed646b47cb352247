import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { TimestampWriter, parseCompact } from '../../src/core/timestamp.ts';

test('times are written with six digits in both spellings, and read back', () => {
  const writer = new TimestampWriter();
  const target = Buffer.alloc(27);
  // Steps of any size, so that every combination of kept and renewed calendar parts occurs.
  const timesUs = fc.array(fc.integer({ min: 0, max: 253402300799 }).map((second) => second * 1000 + (second % 1000)));
  fc.assert(
    fc.property(timesUs, (list) => {
      for (const timeUs of list.flatMap((time) => [time, time + 1, time + 1_000_000])) {
        const milliseconds = new Date(Math.floor(timeUs / 1000)).toISOString();
        const expected = `${milliseconds.slice(0, -1)}${String(timeUs % 1000).padStart(3, '0')}Z`;
        writer.writeIso(target, 0, timeUs);
        assert.equal(target.toString('latin1'), expected);
        writer.writeCompact(target, 0, timeUs);
        const compact = target.toString('latin1', 0, 22);
        assert.equal(compact, expected.replace(/[-:.]/g, ''));
        assert.equal(parseCompact(compact), timeUs);
      }
    }),
  );
});
