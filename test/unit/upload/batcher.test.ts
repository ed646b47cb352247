import { test } from 'node:test';
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { RecordView } from '../../../src/core/recordview.ts';
import type { Batch } from '../../../src/upload/batch.ts';
import { halve, plainBody } from '../../../src/upload/batch.ts';
import { Batcher } from '../../../src/upload/batcher.ts';
import type { BatcherSettings } from '../../../src/upload/batcher.ts';
import { createCodec } from '../../../src/upload/compress.ts';
import { UploadLimits, readInfo } from '../../../src/upload/limits.ts';
import { truncateRun } from '../../../src/upload/truncate.ts';
import { CounterList, TRACE_UUID, makeRecord } from '../assemble/fakes.ts';
import type { SpanSketch } from '../assemble/fakes.ts';
import { FakeClock, codec, makeTenant } from './fakes.ts';

const ORDER = Buffer.from(`20250519T171915185223Z${TRACE_UUID}`);
const ONE = makeTenant(1);
const TWO = makeTenant(2);

function setUp(settings: Partial<BatcherSettings & { batchSize: number }> = {}): {
  batcher: Batcher;
  batches: Batch[];
  limits: UploadLimits;
  clock: FakeClock;
  counters: CounterList;
  put: (tenant: typeof ONE, sketch?: SpanSketch) => void;
} {
  const all = {
    batchSize: 100,
    maxBufferBytes: 1_000_000,
    flushIntervalMs: 1000,
    tenantCount: 100,
    followSources: false,
    ...settings,
  };
  const limits = new UploadLimits(all);
  const counters = new CounterList();
  const clock = new FakeClock();
  const batches: Batch[] = [];
  const batcher = new Batcher(all, limits, codec, (batch) => batches.push(batch), counters, clock);
  const record = new RecordView();
  const put = (tenant: typeof ONE, sketch: SpanSketch = {}): void => {
    record.open(makeRecord(sketch), 0);
    batcher.put(tenant, record, ORDER, ORDER.length, Number.NaN);
  };
  return { batcher, batches, limits, clock, counters, put };
}

const padded = (bytes: number): SpanSketch => ({ parts: { Inputs: `"${'x'.repeat(bytes)}"` } });
const runsOf = (batch: Batch): number =>
  plainBody(batch, codec)
    .toString()
    .match(/name="post\.[^".]+"/g)?.length ?? 0;

/** Reads a body back strictly by its lengths. */
function parts(plain: Buffer, boundary: string): { name: string; body: Buffer }[] {
  const found: { name: string; body: Buffer }[] = [];
  let at = 0;
  for (;;) {
    if (plain.toString('latin1', at, at + boundary.length + 4) === `--${boundary}--`) break;
    const head = plain.indexOf('\r\n\r\n', at);
    const text = plain.toString('latin1', at, head);
    const match = new RegExp(
      `^--${boundary}\r\nContent-Disposition: form-data; name="([^"]+)"\r\nContent-Type: [^\r]+\r\nContent-Length: (\\d+)$`,
    ).exec(text);
    assert.ok(match, text);
    const lengthBytes = Number(match[2]);
    found.push({ name: match[1] ?? '', body: plain.subarray(head + 4, head + 4 + lengthBytes) });
    assert.equal(plain.toString('latin1', head + 4 + lengthBytes, head + 6 + lengthBytes), '\r\n');
    at = head + 6 + lengthBytes;
  }
  assert.equal(plain.length, at + boundary.length + 6);
  return found;
}

test('a batch is sealed at its number of runs and is a complete body', () => {
  const { batches, put } = setUp({ batchSize: 3 });
  for (let i = 0; i < 7; i++) put(ONE, { parts: { Inputs: `{"i":${i}}` } });
  assert.deepEqual(
    batches.map((batch) => batch.runCount),
    [3, 3],
  );
  const [batch] = batches;
  assert.ok(batch);
  const plain = zstdDecompressSync(batch.body);
  assert.equal(plain.length, batch.plainBytes);
  const found = parts(plain, batch.boundary);
  assert.deepEqual(
    found.map(({ name }) => name),
    Array.from({ length: 3 }, () => [`post.${TRACE_UUID}`, `post.${TRACE_UUID}.inputs`]).flat(),
  );
  assert.deepEqual(
    found.filter((_, i) => i % 2 === 1).map(({ body }) => body.toString()),
    ['{"i":0}', '{"i":1}', '{"i":2}'],
  );
});

test('a batch is sealed before the run that would carry it beyond its bytes; a larger run travels alone', () => {
  const { batcher, batches, put } = setUp({ maxBufferBytes: 10_000 });
  for (const bytes of [3000, 3000, 3000, 3000, 50_000, 100]) put(ONE, padded(bytes));
  batcher.flush();
  assert.deepEqual(
    batches.map((batch) => batch.runCount),
    [2, 2, 1, 1],
  );
  assert.deepEqual(batches.map(runsOf), [2, 2, 1, 1]);
  for (const batch of batches) assert.ok(batch.plainBytes <= 10_000 || batch.runCount === 1);
});

test('no body exceeds the limit by a byte, whatever the sizes', () => {
  const { batcher, batches, put } = setUp({ maxBufferBytes: 5000 });
  for (let bytes = 0; bytes < 900; bytes += 7) put(ONE, padded(bytes));
  batcher.flush();
  assert.ok(batches.every((batch) => batch.plainBytes <= 5000));
  assert.ok(batches.some((batch) => batch.plainBytes > 4300));
  assert.equal(
    batches.reduce((sum, batch) => sum + runsOf(batch), 0),
    129,
  );
});

test('a batch leaves when the flush interval after its first run has passed', async () => {
  const { batcher, batches, clock, counters, put } = setUp();
  assert.equal(batcher.nextFlushMs, Number.POSITIVE_INFINITY);
  put(ONE);
  const firstMs = clock.nowMs();
  await clock.advance(600);
  put(ONE);
  put(TWO);
  assert.equal(batcher.nextFlushMs, firstMs + 1000);
  batcher.flushDue(firstMs + 999);
  assert.equal(batches.length, 0);
  batcher.flushDue(firstMs + 1000);
  assert.deepEqual(
    batches.map((batch) => [batch.tenant.number, batch.runCount]),
    [[1, 2]],
  );
  assert.equal(batcher.nextFlushMs, firstMs + 1600);
  assert.equal(counters.of('batches_sealed_late'), 1);
  assert.equal(batcher.openRunCount, 1);
});

test('tenants never share a batch', () => {
  const { batcher, batches, put } = setUp();
  for (let i = 0; i < 10; i++) put(i % 2 === 0 ? ONE : TWO, { key: `key-${(i % 2) + 1}` });
  batcher.flush();
  assert.deepEqual(
    batches.map((batch) => [batch.tenant.number, batch.runCount]),
    [
      [1, 5],
      [2, 5],
    ],
  );
});

test('too many open batches, or too much memory in them, seals the oldest early', () => {
  const many = setUp({ tenantCount: 3 });
  for (let i = 1; i <= 5; i++) many.put(makeTenant(i));
  assert.deepEqual(
    many.batches.map((batch) => batch.tenant.number),
    [1, 2],
  );
  const large = setUp({ maxBufferBytes: 3_000_000 });
  for (let i = 1; i <= 50; i++) {
    large.put(makeTenant(i), padded(1_000_000));
    assert.ok(large.batcher.openBytes <= 4 * 3_000_000);
  }
});

test('the limits of the backend narrow the settings and choose the encoding', () => {
  const { batcher, batches, limits, put } = setUp();
  limits.learn(
    readInfo({
      batch_ingest_config: { size_limit: 2, size_limit_bytes: 20_000_000 },
      instance_flags: { zstd_compression_enabled: false, gzip_body_enabled: true },
    }),
  );
  put(ONE);
  put(ONE);
  const [batch] = batches;
  assert.ok(batch);
  assert.equal(batch.coding, 'gzip');
  assert.equal(gunzipSync(batch.body).length, batch.plainBytes);
  assert.equal(limits.maxBatchBytes, 1_000_000);
  limits.refuseCoding('gzip');
  put(ONE);
  batcher.flush();
  assert.equal(batches[1]?.body.length, batches[1]?.plainBytes);
});

test('a refused size is remembered as half of it, never as more than before, and not below 256 KiB', () => {
  const limits = new UploadLimits({ batchSize: 100, maxBufferBytes: 10_000_000 });
  for (const [refusedBytes, expectedBytes] of [
    [4_000_000, 2_000_000],
    [6_000_000, 2_000_000],
    [600_000, 300_000],
    [400_000, 262_144],
    [1000, 262_144],
  ] as const) {
    limits.refuseSize(refusedBytes);
    assert.equal(limits.maxBatchBytes, expectedBytes, `after ${refusedBytes}`);
  }
});

test('an answer of /info that says nothing, or nonsense, changes nothing', () => {
  const limits = new UploadLimits({ batchSize: 100, maxBufferBytes: 1000 });
  for (const document of [
    null,
    7,
    [],
    { batch_ingest_config: 'x' },
    { batch_ingest_config: { size_limit: -1 }, instance_flags: { zstd_compression_enabled: 'no' } },
  ]) {
    limits.learn(readInfo(document));
  }
  assert.deepEqual([limits.maxBatchRuns, limits.maxBatchBytes, limits.coding], [100, 1000, 'zstd']);
});

test('halves hold the same runs, each a complete body', () => {
  const { batcher, batches, put } = setUp();
  for (const bytes of [10, 20, 30, 5000, 40]) put(ONE, padded(bytes));
  batcher.flush();
  const [batch] = batches;
  assert.ok(batch);
  const inputs = (one: Batch): number[] =>
    parts(plainBody(one, codec), one.boundary)
      .filter(({ name }) => name.endsWith('.inputs'))
      .map(({ body }) => body.length - 2);
  assert.deepEqual(halve(batch, codec, 'zstd', 'runs').map(inputs), [
    [10, 20],
    [30, 5000, 40],
  ]);
  const [light, heavy] = halve(batch, codec, 'gzip', 'bytes');
  assert.deepEqual([inputs(light), inputs(heavy)], [[10, 20, 30, 5000], [40]]);
  const [first, second] = halve(light, codec, 'identity', 'bytes');
  assert.deepEqual([inputs(first), inputs(second)], [[10, 20, 30], [5000]]);
});

test('a run cut short keeps its identity, loses events and attachments, and says what is missing', () => {
  const { batcher, batches, put } = setUp({ maxBufferBytes: 10_000_000 });
  const data = Buffer.from('\x01\x00\x01\x00\x01\x00\x00\x00ab!', 'latin1');
  put(ONE, {
    parts: {
      Inputs: `{"q":"${'ä'.repeat(1000)}"}`,
      Outputs: `{"a":"${'é'.repeat(100_000)}"}`,
      Events: '[{"name":"e"}]',
      Extra: '{"metadata":{"k":1},"runtime":{}}',
      Error: '"boom"',
      Attachments: data,
    },
  });
  batcher.flush();
  const [batch] = batches;
  assert.ok(batch);
  const short = truncateRun(batch, codec, 'zstd');
  const found = parts(plainBody(short, codec), short.boundary);
  const id = `post.${TRACE_UUID}`;
  assert.deepEqual(
    found.map(({ name }) => name),
    [id, `${id}.inputs`, `${id}.outputs`, `${id}.extra`, `${id}.error`],
  );
  const [post, inputs, outputs, extra] = found.map(({ body }) => JSON.parse(body.toString()));
  assert.equal(post.id, TRACE_UUID);
  assert.equal(inputs.q.length, 1000);
  assert.equal(outputs.truncated, true);
  assert.equal(outputs.original_bytes, 200_008);
  assert.match(outputs.prefix, /^\{"a":"é+$/);
  assert.deepEqual(extra, {
    metadata: { k: 1, truncated_fields: ['outputs'], truncated_from_bytes: batch.plainBytes },
    runtime: {},
  });
  assert.equal(short.runCount, 1);
  assert.equal(short.plainBytes, plainBody(short, codec).length);
});

test('an extra that is too large to be parsed is replaced, though something else is larger', () => {
  const { batcher, batches, put } = setUp();
  const lists = `{"metadata":{"k":1},"a":[${'[],'.repeat(400_000)}0]}`;
  put(ONE, { parts: { Inputs: `{"q":"${'x'.repeat(1_300_000)}"}`, Extra: lists } });
  batcher.flush();
  const [batch] = batches;
  assert.ok(batch);
  const short = truncateRun(batch, codec, 'identity');
  const bodies = new Map(parts(plainBody(short, codec), short.boundary).map(({ name, body }) => [name, body]));
  const extra = JSON.parse(String(bodies.get(`post.${TRACE_UUID}.extra`)));
  assert.deepEqual(extra.metadata, { truncated_fields: ['inputs', 'extra'], truncated_from_bytes: batch.plainBytes });
  assert.deepEqual([extra.truncated, extra.original_bytes], [true, lists.length]);
  assert.ok(lists.startsWith(extra.prefix));
});

test('a run without extra gets one that says what is missing', () => {
  const { batcher, batches, put } = setUp();
  put(ONE, padded(10_000));
  batcher.flush();
  const [batch] = batches;
  assert.ok(batch);
  const short = truncateRun(batch, codec, 'identity');
  const found = parts(plainBody(short, codec), short.boundary);
  assert.deepEqual(
    found.map(({ name }) => name.slice(5 + 36)),
    ['', '.extra', '.inputs'],
  );
});

test('native zstd, the zlib fallback and gzip all give back what went in', () => {
  const plain = Buffer.from('the same text over and over '.repeat(1000));
  for (const one of [createCodec(1), createCodec(3, null)]) {
    for (const coding of ['zstd', 'gzip', 'identity'] as const) {
      const results = [one.encode(plain, coding), one.encode(plain.subarray(0, 100), coding)];
      assert.deepEqual(one.decode(results[0] as Buffer, coding, plain.length), plain);
      assert.equal((results[0] as Buffer).buffer === plain.buffer, false);
      if (coding !== 'identity') assert.ok((results[0] as Buffer).length < 500);
    }
  }
  assert.equal(createCodec(1, null).implementation, 'node:zlib');
});

test('results that are given back lend their memory to later ones, and only those', () => {
  const one = createCodec(1);
  // random bytes do not compress: results large enough to be kept
  const [a, b] = [randomBytes(20_000), randomBytes(20_000)];
  const first = one.encode(a, 'zstd');
  const kept = one.encode(b, 'zstd');
  const copy = Buffer.from(kept);
  one.release(first);
  const second = one.encode(a, 'zstd');
  if (one.implementation === 'zstd-napi') assert.equal(second.buffer, first.buffer);
  assert.deepEqual(one.decode(second, 'zstd', 20_000), a);
  assert.deepEqual(kept, copy);
  one.release(Buffer.alloc(10)); // no result of its own: nothing happens
});
