/** kernel.wasm is what its sources compile to, and both sides of it agree on where in memory what lies. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import fc from 'fast-check';

import { Double, Kernel, Word } from '../../src/translate/kernel/kernel.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('the committed kernel is what its sources compile to', () => {
  const scripts = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> })
    .scripts;
  const folder = mkdtempSync(join(tmpdir(), 'kernel-'));
  try {
    const built = join(folder, 'kernel.wasm');
    const [, ...words] = (scripts['kernel:build'] ?? '').split(' ');
    const args = words.map((word) => (word === 'src/translate/kernel/kernel.wasm' ? built : word));
    assert.ok(args.includes(built));
    execFileSync(process.execPath, [join(root, 'node_modules/assemblyscript/bin/asc.js'), ...args], { cwd: root });
    assert.deepEqual(readFileSync(built), readFileSync(join(root, 'src/translate/kernel/kernel.wasm')));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('both sides of the kernel have the same addresses', () => {
  const layout = readFileSync(join(root, 'src/translate/kernel/assembly/layout.ts'), 'utf8');
  const address = new Map<string, number>();
  for (const [, name = '', base, plus = '0'] of layout.matchAll(/export const (\w+): usize = (\w+)(?: \+ (\d+))?;/g)) {
    address.set(name, (address.get(base ?? '') ?? Number(base)) + Number(plus));
  }
  const words: Record<keyof typeof Word, string> = {
    DocFlags: 'RESULT_FLAGS',
    DocNodes: 'RESULT_NODES',
    UnescapeOut: 'RESULT_OUT',
    TraceOff: 'SPAN_TRACE_OFF',
    TraceLen: 'SPAN_TRACE_LEN',
    SpanOff: 'SPAN_ID_OFF',
    SpanLen: 'SPAN_ID_LEN',
    ParentOff: 'SPAN_PARENT_OFF',
    ParentLen: 'SPAN_PARENT_LEN',
    NameOff: 'SPAN_NAME_OFF',
    NameLen: 'SPAN_NAME_LEN',
    Kind: 'SPAN_KIND',
    StatusCode: 'SPAN_STATUS_CODE',
    StatusOff: 'SPAN_STATUS_OFF',
    StatusLen: 'SPAN_STATUS_LEN',
    Events: 'SPAN_EVENTS',
    Links: 'SPAN_LINKS',
    Indexed: 'SPAN_INDEXED',
    Prefixed: 'SPAN_PREFIXED',
    Groups: 'SPAN_GROUPS',
    Marks: 'SPAN_MARKS',
    EventNameOff: 'EVENT_NAME_OFF',
    EventNameLen: 'EVENT_NAME_LEN',
    LinkTraceOff: 'LINK_TRACE_OFF',
    LinkTraceLen: 'LINK_TRACE_LEN',
    LinkSpanOff: 'LINK_SPAN_OFF',
    LinkSpanLen: 'LINK_SPAN_LEN',
    ValueType: 'VALUE_TYPE',
    ValueA: 'VALUE_A',
    ValueB: 'VALUE_B',
    MemberKeyOff: 'MEMBER_KEY_OFF',
    MemberKeyLen: 'MEMBER_KEY_LEN',
    TraceStateOff: 'SPAN_TRACE_STATE_OFF',
    TraceStateLen: 'SPAN_TRACE_STATE_LEN',
    Given: 'SPAN_GIVEN',
    EventGiven: 'EVENT_GIVEN',
  };
  for (const [name, theirs] of Object.entries(words)) {
    assert.equal(Word[name as keyof typeof Word] * 4, address.get(theirs), name);
  }
  const doubles = { StartUs: 'SPAN_START_US', EndUs: 'SPAN_END_US', EventTimeUs: 'EVENT_TIME_US' } as const;
  for (const [name, theirs] of Object.entries(doubles)) {
    assert.equal(Double[name as keyof typeof Double] * 8, address.get(theirs), name);
  }
});

const kernel = new Kernel();
const AT = 0x100000;
const OUT = 0x180000;
kernel.reserve(0x200000);

/** Puts bytes where the kernel reads; what lies behind them is hostile. */
function put(bytes: Uint8Array): void {
  kernel.u8.fill(0x22, AT, AT + bytes.length + 64);
  kernel.u8.set(bytes, AT);
}

const out = (end: number): string => Buffer.from(kernel.u8.subarray(OUT, end)).toString('utf8');
const bytesOrText = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 100 }).map((text) => new Uint8Array(Buffer.from(text))),
  fc.string({ maxLength: 200 }).map((text) => new Uint8Array(Buffer.from(text))),
);

test('strings are escaped as JSON.stringify does, ill-formed UTF-8 replaced as TextDecoder does', () => {
  fc.assert(
    fc.property(bytesOrText, (bytes) => {
      put(bytes);
      const end = kernel.x.escape(AT, bytes.length, OUT);
      const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
      assert.equal(`"${out(end)}"`, JSON.stringify(text));
      assert.equal(kernel.x.wellFormed(AT, bytes.length) === 1, Buffer.from(text).equals(Buffer.from(bytes)));
      assert.equal(out(kernel.x.sanitize(AT, bytes.length, OUT)), text);
    }),
    { numRuns: 2000 },
  );
});

test('documents are accepted and refused as JSON.parse does', () => {
  const damaged = fc
    .tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', '"', '\\', '{', ']', ',', '\u0000', '\n', '1', 'e', '\\u12', '\\ud800'),
    )
    .map(([json, place, insert]) => {
      const at = place % (json.length + 1);
      return json.slice(0, at) + insert + json.slice(at);
    });
  fc.assert(
    fc.property(fc.oneof(fc.json(), damaged, fc.string()), (text) => {
      const bytes = new Uint8Array(Buffer.from(text));
      put(bytes);
      let valid = true;
      try {
        JSON.parse(Buffer.from(bytes).toString('utf8'));
      } catch {
        valid = false;
      }
      assert.equal(kernel.x.parse(AT, AT + bytes.length, OUT, 1000) === 0, valid, text);
    }),
    { numRuns: 3000 },
  );
});

test('a JSON string is read back to the text that it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, ascii) => {
      let json = JSON.stringify(text);
      if (ascii) json = json.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
      const bytes = new Uint8Array(Buffer.from(json));
      put(bytes);
      assert.equal(kernel.x.unescape(AT + 1, AT + bytes.length, OUT), AT + bytes.length - 1);
      assert.equal(out(kernel.i32[Word.UnescapeOut] ?? 0), text.toWellFormed());
    }),
    { numRuns: 1000 },
  );
});

test('integers are printed and read with all their digits', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const bits = BigInt.asUintN(64, value);
      const end = kernel.x.decimal(Number(bits & 0xffffffffn), Number(bits >> 32n), OUT);
      assert.equal(out(end), value.toString());
      put(new Uint8Array(Buffer.from(value.toString())));
      assert.equal(kernel.x.integer(AT, value.toString().length), 1);
      assert.equal(kernel.u32[Word.ValueA], Number(bits & 0xffffffffn));
      assert.equal(kernel.u32[Word.ValueB], Number(bits >> 32n));
    }),
    { numRuns: 1000 },
  );
});
