/** Uploads over real HTTP to the backend in its thread: what is taken, what is refused, and with which words. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { after, before, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type BackendClient, createBackendClient, partsOf, type UploadAnswer } from '../../src/backend/client.ts';
import { type FormPart, jsonPart, writeMultipart } from '../../src/backend/form.ts';
import { tenantOfKey } from '../../src/backend/keys.ts';
import { type RunningBackend, startBackend } from '../../src/backend/owner.ts';
import { makeRun, type RunRecord } from '../backend-runs.ts';

let backend: RunningBackend;
let client: BackendClient;

before(async () => {
  backend = await startBackend({ maxBodyBytes: 4_000_000, maxWireBytes: 1_000_000, maxAttachmentBytes: 100_000 });
  client = createBackendClient(backend.url);
});
after(() => backend.stop());

function errorIn(answer: UploadAnswer): string {
  return (JSON.parse(answer.text) as { error: string }).error;
}

async function refused(parts: readonly FormPart[], status: number, text: string | RegExp): Promise<void> {
  const answer = await client.upload(parts);
  assert.equal(answer.status, status, answer.text);
  if (typeof text === 'string') assert.equal(errorIn(answer), text);
  else assert.match(errorIn(answer), text);
}

/** A good run, and one that `change` made bad: the request must fail as a whole. */
async function refusedRun(change: Record<string, unknown>, status: number, text: string | RegExp): Promise<void> {
  const good = makeRun();
  const parts = [...partsOf('post', good), ...partsOf('post', { ...makeRun(), ...change })];
  await refused(parts, status, text);
  assert.equal(await client.run(good.id), null, 'nothing of a refused request is kept');
}

for (const coding of ['', 'gzip', 'zstd'] as const) {
  test(`An upload is taken with content encoding "${coding}".`, async () => {
    const root = makeRun({
      fields: { inputs: { q: 'héllo' }, outputs: { a: 1 }, events: [{ name: 'e' }], tags: ['x', 'y'] },
    });
    const child = makeRun({
      parent: root,
      fields: { extra: { metadata: { k: 'v' } }, error: 'boom', serialized: { n: 1 } },
    });
    const answer = await client.uploadRuns([root, child], { coding });
    assert.equal(answer.status, 202);
    assert.equal(answer.text, '{"message":"Runs batch ingested"}');
    const run = await client.run(root.id);
    assert.deepEqual(run?.inputs, { q: 'héllo' });
    assert.deepEqual(run.outputs, { a: 1 });
    assert.deepEqual(run.events, [{ name: 'e' }]);
    assert.deepEqual(run.tags, ['x', 'y']);
    assert.equal(run.status, 'success');
    const other = await client.run(child.id);
    assert.equal(other?.error, 'boom');
    assert.equal(other.status, 'error');
    assert.deepEqual(other.extra, { metadata: { k: 'v' } });
    assert.deepEqual(other.serialized, { n: 1 });
    assert.equal(other.dotted_order, child.dotted_order);
  });
}

test('Numbers of any size come back digit by digit.', async () => {
  const run = makeRun();
  const parts = partsOf('post', run);
  const bytes = Buffer.from('{"n":123456789012345678901234567890,"f":1.10}');
  parts.push({ name: `post.${run.id}.inputs`, mediaType: 'application/json', bytes });
  assert.equal((await client.upload(parts)).status, 202);
  const text = await (await fetch(`${backend.url}/api/runs/${run.id}`)).text();
  assert.match(text, /"inputs":\{"n":123456789012345678901234567890,"f":1\.10\}/);
});

test('Documents of any size come back whole.', async () => {
  const prompt = 'a long conversation, '.repeat(20_000);
  const run = makeRun({ fields: { inputs: { prompt }, outputs: {} } });
  assert.equal((await client.uploadRuns([run], { coding: 'zstd' })).status, 202);
  assert.deepEqual((await client.run(run.id))?.inputs, { prompt });
});

test('Documents inside of the record are taken like those in parts of their own.', async () => {
  const run = makeRun({ fields: { inputs: { a: 1 }, error: 'bad', events: [] } });
  assert.equal((await client.upload([jsonPart(`post.${run.id}`, run)])).status, 202);
  const stored = await client.run(run.id);
  assert.deepEqual([stored?.inputs, stored?.error, stored?.events], [{ a: 1 }, 'bad', []]);
  assert.equal(stored?.record['inputs'], undefined);
});

test('Info tells the batch limits and that zstd is welcome.', async () => {
  const info = (await (await fetch(`${backend.url}/info`)).json()) as Record<string, Record<string, unknown>>;
  assert.equal(info['batch_ingest_config']?.['use_multipart_endpoint'], true);
  assert.equal(info['batch_ingest_config']['size_limit'], 100);
  assert.equal(info['batch_ingest_config']['size_limit_bytes'], 20_971_520);
  assert.equal(info['instance_flags']?.['zstd_compression_enabled'], true);
});

test('The same operation on the same run twice is a conflict, and its whole request is not stored.', async () => {
  const seen = makeRun();
  assert.equal((await client.uploadRuns([seen])).status, 202);
  const fresh = makeRun();
  const answer = await client.uploadRuns([fresh, seen]);
  assert.equal(answer.status, 409);
  assert.equal(errorIn(answer), 'Conflict: payload already received: payloads already received');
  assert.equal(await client.run(fresh.id), null);
  assert.equal((await client.uploadRuns([fresh])).status, 202, 'alone it is taken');
  const twin = makeRun();
  assert.equal((await client.uploadRuns([twin, twin])).status, 409, 'also within one request');
  assert.equal(await client.run(twin.id), null);
});

test('The same run under two keys is two runs.', async () => {
  const run = makeRun();
  assert.equal((await client.uploadRuns([run], { key: 'key-a' })).status, 202);
  assert.equal((await client.uploadRuns([run], { key: 'key-b' })).status, 202);
  assert.equal((await client.run(run.id, tenantOfKey('key-a')))?.tenant, tenantOfKey('key-a'));
  assert.equal((await client.run(run.id, tenantOfKey('key-b')))?.tenant, tenantOfKey('key-b'));
});

test('An update changes what it names and leaves the rest; nulls change nothing.', async () => {
  const run = makeRun({ durationUs: null, fields: { inputs: { q: 1 }, tags: ['a'] } });
  assert.equal((await client.uploadRuns([run])).status, 202);
  assert.equal((await client.run(run.id))?.status, 'pending');
  const { id, trace_id, dotted_order } = run;
  const patch = { id, trace_id, dotted_order, end_time: '2026-08-22T10:15:31.250001Z', name: null, outputs: { a: 2 } };
  assert.equal((await client.uploadRuns([patch], { op: 'patch' })).status, 202);
  const stored = await client.run(id);
  assert.deepEqual([stored?.name, stored?.status, stored?.duration_ms], ['agent', 'success', 1000]);
  assert.deepEqual([stored?.inputs, stored?.outputs, stored?.tags], [{ q: 1 }, { a: 2 }, ['a']]);
  assert.equal((await client.uploadRuns([patch], { op: 'patch' })).status, 409);
});

test('An update may come before its run, and still wins.', async () => {
  const run = makeRun({ durationUs: null, fields: { inputs: { q: 1 }, outputs: { old: true } } });
  const { id, trace_id, dotted_order } = run;
  const patch = {
    id,
    trace_id,
    dotted_order,
    end_time: '2026-08-22T10:15:31.250001Z',
    outputs: { a: 2 },
    error: 'late',
  };
  assert.equal((await client.uploadRuns([patch], { op: 'patch' })).status, 202);
  assert.equal((await client.run(id))?.name, '');
  assert.equal((await client.uploadRuns([run])).status, 202);
  const stored = await client.run(id);
  assert.deepEqual([stored?.name, stored?.status, stored?.error], ['agent', 'error', 'late']);
  assert.deepEqual([stored?.inputs, stored?.outputs], [{ q: 1 }, { a: 2 }]);
  const trace = await client.trace(id);
  assert.deepEqual([trace?.trace.run_count, trace?.trace.error_count, trace?.trace.status], [1, 1, 'error']);
});

test('An update in the request of its run is applied to it.', async () => {
  const run = makeRun({ durationUs: null });
  const { id, trace_id, dotted_order } = run;
  const parts = [
    ...partsOf('post', run),
    ...partsOf('patch', { id, trace_id, dotted_order, outputs: { a: 1 }, end_time: run['start_time'] }),
  ];
  assert.equal((await client.upload(parts)).status, 202);
  assert.deepEqual((await client.run(id))?.outputs, { a: 1 });
});

const orderRules: [title: string, run: () => RunRecord, text: RegExp][] = [
  [
    'a root with two segments',
    () => {
      const child = makeRun({ parent: makeRun() });
      return { ...child, parent_run_id: null };
    },
    /^Bad request: invalid 'dotted_order': dotted_order must contain a single part for root runs for run_id:/,
  ],
  [
    'a child with one segment',
    () => ({ ...makeRun(), parent_run_id: randomUUID() }),
    /^Bad request: invalid 'dotted_order': dotted_order must contain at least two parts for child runs for run_id:/,
  ],
  [
    'three digits of fraction',
    () => {
      const run = makeRun();
      return { ...run, dotted_order: `20251223T041955111Z${run.id}` };
    },
    /invalid timestamp in dotted_order 20251223T041955111 at index 0: cannot parse '\.111' as '\.000000'/,
  ],
  [
    'a child before its parent',
    () => {
      const root = makeRun();
      return makeRun({ parent: root, startUs: Number(root['start_us']) - 2000 });
    },
    /dotted_order has timestamp 2026-08-22 10:15:30\.248001 earlier than parent timestamp 2026-08-22 10:15:30\.250001/,
  ],
  ['another trace id', () => ({ ...makeRun(), trace_id: randomUUID() }), /is not the trace_id for run_id:/],
  [
    'another parent than the segment before the last',
    () => ({ ...makeRun({ parent: makeRun() }), parent_run_id: randomUUID() }),
    /before the last in dotted_order is not the parent_run_id for run_id:/,
  ],
  [
    'another start time than the last segment',
    () => ({ ...makeRun(), start_time: '2026-08-22T10:15:30.250002Z' }),
    /in dotted_order is not the start_time 2026-08-22T10:15:30\.250002Z for run_id:/,
  ],
];
for (const [title, run, text] of orderRules) {
  test(`400: ${title}.`, async () => {
    const good = makeRun();
    await refused([...partsOf('post', good), ...partsOf('post', run())], 400, text);
    assert.equal(await client.run(good.id), null);
  });
}

test('400: an update that puts a known run into another trace.', async () => {
  const run = makeRun();
  assert.equal((await client.uploadRuns([run])).status, 202);
  const elsewhere = makeRun({ parent: makeRun(), id: run.id });
  const answer = await client.uploadRuns([elsewhere], { op: 'patch' });
  assert.equal(answer.status, 400);
  assert.match(errorIn(answer), /belongs to trace/);
});

test('422: fields that are missing or of the wrong kind.', async () => {
  await refusedRun({ name: '' }, 422, /name is required$/);
  await refusedRun({ name: 7 }, 422, /name must be a string$/);
  await refusedRun({ run_type: undefined }, 422, /run_type is required$/);
  await refusedRun({ run_type: 'agent' }, 422, /run_type must be one of tool, chain, llm, .* not "agent"$/);
  await refusedRun({ status: 'done' }, 422, /status must be one of success, error, pending, not "done"$/);
  await refusedRun({ start_time: undefined }, 422, /start_time is required$/);
  await refusedRun(
    { start_time: '2026-08-22T10:15:30.250001' },
    422,
    /start_time .* is not an RFC 3339 time with a zone, from/,
  );
  await refusedRun({ end_time: 'yesterday' }, 422, /end_time "yesterday" is not/);
  await refusedRun({ trace_id: undefined }, 422, /trace_id is required$/);
  await refusedRun({ trace_id: 'x' }, 422, /trace_id must be a UUID$/);
  await refusedRun({ dotted_order: undefined }, 422, /dotted_order is required$/);
  await refusedRun({ tags: 'a' }, 422, /tags must be an array of strings$/);
  await refusedRun({ tags: [1] }, 422, /tags must be an array of strings$/);
  await refusedRun({ reference_example_id: 'x' }, 422, /reference_example_id must be a UUID$/);
  await refusedRun({ inputs: ['bare'] }, 422, /inputs must be an object$/);
  await refusedRun({ outputs: 'bare' }, 422, /outputs must be an object$/);
  await refusedRun({ extra: [] }, 422, /extra must be an object$/);
  await refusedRun({ events: {} }, 422, /events must be an array of objects$/);
  await refusedRun({ error: { message: 'x' } }, 422, /error must be a string$/);
});

test('422: parts that do not follow the grammar.', async () => {
  const run = makeRun();
  const named = (name: string, value: unknown = {}): FormPart[] => [jsonPart(name, value)];
  for (const name of [
    'run',
    'post',
    `put.${run.id}`,
    `post.${run.id}.input`,
    `post.${run.id}.inputs.x`,
    'post.123',
    `feedback.${run.id}.x`,
  ]) {
    await refused(named(name), 422, `Unprocessable entity: invalid part name "${name}"`);
  }
  await refused(named(`post.${run.id}.inputs`), 422, /comes before its run$/);
  await refused(
    named(`post.${run.id}`, { ...run, id: randomUUID() }),
    422,
    /id is missing or not the one of the part's name$/,
  );
  await refused(
    [{ ...jsonPart(`post.${run.id}`, run), mediaType: 'text/plain' }],
    422,
    /must be application\/json, not text\/plain$/,
  );
  const broken = (text: string | Uint8Array): FormPart[] => [
    { name: `post.${run.id}`, mediaType: 'application/json', bytes: Buffer.from(text) },
  ];
  await refused(broken('{"id":'), 422, /is not JSON/);
  await refused(broken('[]'), 422, /must be an object$/);
  await refused(broken(Uint8Array.of(0x22, 0xff, 0x22)), 422, /is not UTF-8$/);
});

test('422: forms that are not closed, and bodies that are no forms.', async () => {
  const body = writeMultipart(partsOf('post', makeRun()), 'B');
  const cut = await client.upload(body.subarray(0, body.byteLength - 4), { boundary: 'B' });
  assert.equal(cut.status, 422);
  assert.equal(errorIn(cut), 'Unprocessable entity: multipart: NextPart: EOF');
  const none = await client.upload(body, { headers: { 'Content-Type': 'application/json' } });
  assert.equal(none.status, 422);
  assert.equal(errorIn(none), "Unprocessable entity: request Content-Type isn't multipart/form-data");
  const headless = await client.upload(
    Buffer.from(`--B\r\nContent-Disposition: form-data; name="post.${randomUUID()}"\r\n\r\n{}\r\n--B--\r\n`),
    { boundary: 'B' },
  );
  assert.equal(headless.status, 422);
  assert.match(errorIn(headless), /has no content type$/);
});

test('Compressed bodies: unknown codings are 415, broken ones 422, bombs 413, several frames one body.', async () => {
  const form = writeMultipart(partsOf('post', makeRun()), 'B');
  const send = (body: Uint8Array, coding: string): Promise<UploadAnswer> =>
    client.upload(body, { boundary: 'B', headers: { 'Content-Encoding': coding } });
  const unknown = await send(form, 'br');
  assert.equal(unknown.status, 415);
  assert.equal(unknown.headers.get('accept-encoding'), 'zstd, gzip');
  assert.equal((await send(form, 'zstd')).status, 422);
  assert.equal((await send(form, 'gzip')).status, 422);
  assert.equal((await send(gzipSync(form).subarray(0, -9), 'gzip')).status, 422);
  assert.equal((await send(zstdCompressSync(form).subarray(0, -9), 'zstd')).status, 422);
  assert.equal((await send(zstdCompressSync(Buffer.alloc(20_000_000)), 'zstd')).status, 413);
  assert.equal((await send(gzipSync(Buffer.alloc(20_000_000)), 'gzip')).status, 413);
  const frames = Buffer.concat([zstdCompressSync(form.subarray(0, 50)), zstdCompressSync(form.subarray(50))]);
  assert.equal((await send(frames, 'ZSTD')).status, 202);
});

test('413: more bytes than the bound, declared or not.', async () => {
  const large = Buffer.alloc(1_000_001);
  const declared = await client.upload(large);
  assert.equal(declared.status, 413);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const request = httpRequest(`${backend.url}/runs/multipart`, {
      method: 'POST',
      headers: { 'X-API-Key': 'k', 'Content-Type': 'multipart/form-data; boundary=B', 'Transfer-Encoding': 'chunked' },
    });
    request.on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
    request.end(large);
  });
  assert.equal(status, 413);
});

test('A key is required; any that is not empty will do, also as a bearer token.', async () => {
  assert.equal((await client.uploadRuns([makeRun()], { key: '' })).status, 401);
  const run = makeRun();
  assert.equal((await client.uploadRuns([run], { key: '', headers: { Authorization: 'Bearer token-1' } })).status, 202);
  assert.equal((await client.run(run.id))?.tenant, tenantOfKey('token-1'));
});

test('Attachments are kept and come back as they were, never as something a browser would run.', async () => {
  const run = makeRun();
  const bytes = Buffer.from([0, 1, 2, 253, 254, 255, 13, 10]);
  const parts: FormPart[] = [
    ...partsOf('post', run),
    { name: `attachment.${run.id}.page`, mediaType: 'text/html', bytes },
  ];
  assert.equal((await client.upload(parts)).status, 202);
  assert.deepEqual((await client.run(run.id))?.attachments, [{ name: 'page', media_type: 'text/html', size_bytes: 8 }]);
  const answer = await fetch(`${backend.url}/api/runs/${run.id}/attachments/page`);
  assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);
  assert.equal(answer.headers.get('content-disposition'), 'attachment');
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.match(answer.headers.get('content-security-policy') ?? '', /sandbox/);
  assert.equal((await fetch(`${backend.url}/api/runs/${run.id}/attachments/other`)).status, 404);
});

test('Attachments of unknown runs, with dotted names, or too large are refused with their request.', async () => {
  const run = makeRun();
  const attached = (name: string, length: number): FormPart[] => [
    ...partsOf('post', run),
    { name, mediaType: 'image/png', bytes: Buffer.alloc(length) },
  ];
  await refused(attached(`attachment.${randomUUID()}.a`, 1), 422, /which is not known$/);
  await refused(attached(`attachment.${run.id}.a.png`, 1), 422, /invalid part name/);
  await refused(attached(`attachment.${run.id}.a`, 100_001), 413, /larger than 100000 bytes$/);
  assert.equal(await client.run(run.id), null);
});

test('Feedback is kept with its run; a naive time in it is refused.', async () => {
  const run = makeRun();
  const feedback = {
    id: randomUUID(),
    run_id: run.id,
    key: 'correctness',
    score: 0.5,
    created_at: '2026-08-22T10:15:30Z',
  };
  assert.equal(
    (await client.upload([...partsOf('post', run), jsonPart(`feedback.${feedback.id}`, feedback)])).status,
    202,
  );
  assert.deepEqual((await client.run(run.id))?.feedback, [feedback]);
  const naive = { ...feedback, created_at: '2026-08-22T10:15:30' };
  await refused(
    [jsonPart(`feedback.${feedback.id}`, naive)],
    422,
    /created_at .* is not an RFC 3339 time with a zone, from/,
  );
  await refused([jsonPart(`feedback.${feedback.id}`, { ...feedback, key: '' })], 422, /key is required$/);
});

test('Projects come from the name, the id, or are called default.', async () => {
  const key = 'projects-key';
  const named = makeRun({ fields: { session_name: 'by name' } });
  const none = makeRun({ fields: { session_name: undefined } });
  assert.equal((await client.uploadRuns([named, none], { key })).status, 202);
  const [project] = (await client.projects(tenantOfKey(key))).filter(({ name }) => name === 'by name');
  const byId = makeRun({ fields: { session_name: undefined, session_id: project?.id } });
  assert.equal((await client.uploadRuns([byId], { key })).status, 202);
  assert.equal((await client.run(byId.id))?.project, 'by name');
  assert.equal((await client.run(none.id))?.project, 'default');
  assert.deepEqual(
    (await client.projects(tenantOfKey(key))).map(({ name, trace_count }) => [name, trace_count]),
    [
      ['by name', 2],
      ['default', 1],
    ],
  );
});

test('Hostile names and texts go in and come out as they are.', async () => {
  const hostile = `<img src=x onerror=alert(1)> '; DROP TABLE runs; -- \u0000 \ud83d\ude00 \u202e`;
  const run = makeRun({
    fields: {
      name: hostile,
      session_name: hostile,
      inputs: JSON.parse(`{"__proto__":{"x":1},"q":${JSON.stringify(hostile)}}`),
    },
  });
  assert.equal((await client.uploadRuns([run])).status, 202);
  const stored = await client.run(run.id);
  assert.equal(stored?.record['name'], hostile);
  assert.equal(stored.inputs?.['q'], hostile);
  assert.deepEqual(Object.getOwnPropertyDescriptor(stored.inputs, '__proto__')?.value, { x: 1 });
  assert.equal((await client.runs({ text: `"' OR * NEAR(`, limit: 1 })).items.length, 0);
});

test('Documents nested a hundred thousand deep are taken; where they would have to be written anew, refused.', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const run = makeRun();
  const bytes = Buffer.from(`{"a":${deep}}`);
  const parts = [...partsOf('post', run), { name: `post.${run.id}.inputs`, mediaType: 'application/json', bytes }];
  assert.equal((await client.upload(parts)).status, 202);
  const other = makeRun();
  const record = Buffer.from(`${JSON.stringify(other).slice(0, -1)},"inputs":{"a":${deep}}}`);
  await refused(
    [{ name: `post.${other.id}`, mediaType: 'application/json', bytes: record }],
    422,
    /nested too deeply$/,
  );
});

test('Times and token counts that no number holds exactly spoil no list.', async () => {
  await refusedRun({ start_time: '9999-12-31T23:59:59Z' }, 422, /start_time .* from 1685 to 2255$/);
  const far = makeRun().id;
  const patch = { id: far, trace_id: far, dotted_order: `99991231T235959000000Z${far}` };
  assert.equal((await client.uploadRuns([patch], { op: 'patch' })).status, 400);
  const usage = { input_tokens: Number.MAX_SAFE_INTEGER, output_tokens: 1e308, total_tokens: -5, total_cost: '9' };
  const root = makeRun();
  const chat = { run_type: 'llm', extra: { metadata: { usage_metadata: usage } } };
  const children = [1, 2, 3].map(() => makeRun({ parent: root, fields: chat }));
  assert.equal((await client.uploadRuns([root, ...children])).status, 202);
  assert.equal((await client.trace(root.id))?.trace.prompt_tokens, 3e9);
  const long = makeRun({ startUs: -8e15, fields: { end_time: '2255-01-01T00:00:00Z' } });
  assert.equal((await client.uploadRuns([long])).status, 202);
  assert.equal((await client.run(long.id))?.duration_ms, Number.MAX_SAFE_INTEGER / 1000);
  assert.ok((await client.traces()).items.length > 0);
  assert.ok((await client.stats()).total_tokens >= 3e9);
});

test('Other methods and paths are refused, also for names that are not ours.', async () => {
  assert.equal((await fetch(`${backend.url}/runs/multipart`)).status, 405);
  assert.equal((await fetch(`${backend.url}/api/runs`, { method: 'POST' })).status, 405);
  assert.equal((await fetch(`${backend.url}/nothing`)).status, 404);
  assert.equal((await fetch(`${backend.url}/api/nothing`)).status, 404);
  assert.equal((await fetch(`${backend.url}/api/faults`)).status, 404, 'faults are off by default');
  assert.equal((await fetch(`${backend.url}/api/runs/%E0%A4%A`)).status, 404);
  const rebound = await new Promise<number | undefined>((resolve, reject) => {
    const request = httpRequest(`${backend.url}/api/runs`, { headers: { Host: 'evil.example:80' } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
    request.end();
  });
  assert.equal(rebound, 421);
});

test('The log of uploads tells what came, newest first.', async () => {
  await client.uploadRuns([makeRun(), makeRun()], { key: 'noted', coding: 'zstd' });
  const [note] = await client.uploads();
  assert.deepEqual(
    [note?.status, note?.tenant, note?.post_count, note?.patch_count, note?.content_encoding, note?.error],
    [202, tenantOfKey('noted'), 2, 0, 'zstd', null],
  );
  assert.ok(note !== undefined && note.wire_bytes < note.body_bytes);
});

test('503: more bytes being received at once than the bound.', async () => {
  const own = await startBackend({ maxInFlightBytes: 10_000 });
  const small = createBackendClient(own.url);
  const answer = await small.upload(Buffer.alloc(20_000));
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get('retry-after'), '1');
  assert.equal((await small.uploadRuns([makeRun()])).status, 202, 'what was refused no longer counts');
  await own.stop();
});
