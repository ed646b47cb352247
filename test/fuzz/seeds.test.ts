/** Every committed input obeys the law of its target: those that reach much, and those that once broke it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createDecoder } from '../../src/decode/decoder.ts';
import { readSeeds } from './seeds.ts';
import { openTarget, TARGET_NAMES } from './target.ts';

for (const name of TARGET_NAMES) {
  describe(`the law of the fuzzing target ${name}`, () => {
    test('holds for what was found wrong once, for the committed seeds and for cuts of them', async (t) => {
      const target = await openTarget(name);
      t.after(() => target.close?.());
      const seeds = [...readSeeds('found', name), ...readSeeds('seeds', name)];
      for (const { title, bytes } of [...seeds, ...target.seeds().map((bytes) => ({ title: 'own', bytes }))]) {
        for (const input of [bytes, bytes.subarray(0, bytes.length >> 1), bytes.subarray(bytes.length >> 1)]) {
          try {
            await target.run(new Uint8Array(input));
            target.check?.(new Uint8Array(input));
          } catch (error) {
            throw new Error(`${title}: ${Buffer.from(input).toString('base64')}`, { cause: error });
          }
        }
      }
    });
  });
}

test('bodies of spans are refused where their titles say so, and read where not', () => {
  const decoder = createDecoder({ genericAttributes: true, rootRunId: 'trace', converterModule: null });
  for (const encoding of ['protobuf', 'json'] as const) {
    const titled = readSeeds('seeds', encoding).filter(({ title }) => title.includes(': '));
    assert.ok(titled.length > 5);
    for (const { title, bytes } of titled) {
      const request = {
        source: bytes,
        encoding,
        apiKey: new Uint8Array(8),
        project: null,
        receivedUs: 1,
        sourceNumber: 0,
      };
      const { kind } = decoder.decode(request, { put: () => true });
      assert.equal(kind, /: refused(,|$)/.test(title) ? 'malformed' : 'decoded', title);
    }
  }
});

test('what was found once is named', () => {
  for (const name of TARGET_NAMES) for (const { title } of readSeeds('found', name)) assert.notEqual(title, '', name);
});
