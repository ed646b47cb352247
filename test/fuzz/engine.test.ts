/** The fuzzer finds what it is there to find: a guard that never cried is no guard. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { Coverage, COUNTERS } from './coverage.ts';
import { distil, fuzz } from './engine.ts';
import { countingSource } from './instrument.ts';
import type { Target } from './target.ts';
import { countingModule } from './wasmcoverage.ts';

/** Code under test that breaks on one word of four letters, one comparison after the other. */
const BRITTLE = `
  const first = (b: Uint8Array): boolean => b[0] === 98;
  function deep(b: Uint8Array): void {
    if (b[1] === 117) if (b[2] === 103) { if (b[3] === 33) throw new Error('found'); }
  }
  tested.run = (b: Uint8Array): void => { switch (first(b)) { case true: deep(b); } };
`;

function brittleTarget(coverage: Coverage, words: Set<string>): Target {
  const tested: { run: (input: Uint8Array) => void } = { run: () => assert.fail('not loaded') };
  run(
    countingSource(BRITTLE, () => coverage.place(), words),
    coverage,
    { tested },
  );
  return {
    maxInputBytes: 16,
    seeds: () => [],
    dictionary: [],
    mutators: [],
    run: (input) => tested.run(input),
  };
}

function run(code: string, coverage: Coverage, names: Record<string, unknown>): void {
  const context = { ...names, Symbol };
  Reflect.set(context, COUNTERS, coverage.counters);
  runInNewContext(code, context);
}

const settings = (target: Target, coverage: Coverage, seed: number, maxRuns: number): Parameters<typeof fuzz>[0] => ({
  target,
  coverage,
  seeds: [],
  words: [],
  seed,
  onRun: () => undefined,
  isOver: (runCount) => runCount >= maxRuns,
});

test('led by what it reaches it finds four bytes in a row, shortens the input, and does the same again for the same seed', async () => {
  const attempt = async (): Promise<{ input: string; runCount: number }> => {
    const coverage = new Coverage();
    const target = brittleTarget(coverage, new Set());
    const { findings, runCount } = await fuzz(settings(target, coverage, 7, 150_000));
    const [finding] = findings;
    assert.equal(findings.length, 1);
    assert.match(finding?.error ?? '', /found/);
    return { input: Buffer.from(finding?.input ?? []).toString(), runCount };
  };
  const once = await attempt();
  assert.equal(once.input, 'bug!');
  assert.deepEqual(await attempt(), once);
});

test('instrumented TypeScript does what it did, and its string literals become words', () => {
  const coverage = new Coverage();
  const words = new Set<string>();
  const source = `
    const odd = (n: number): string => n % 2 === 1 ? 'odd' : 'even';
    class Sum { #sum = 0; add(n: number): this { this.#sum += n; return this; } get value(): number { return this.#sum; } }
    let text = '';
    for (let i = 0; i < 3; i++) text += odd(i);
    while (text.length > 9) text = text.slice(1);
    const or = (null ?? false) || text;
    result.push(or, new Sum().add(2).add(3).value);
  `;
  const result: unknown[] = [];
  const code = countingSource(source, () => coverage.place(), words);
  run(code, coverage, { result });
  assert.deepEqual(result, ['enoddeven', 5]);
  assert.ok(words.has('odd') && words.has('even'));
  assert.ok(coverage.takeNews() > 5);
  assert.equal(coverage.takeNews(), 0, 'the same again is no news');
});

test('an instrumented kernel scans as before and counts its branches', () => {
  const coverage = new Coverage();
  const plain = readFileSync(new URL('../../src/translate/kernel/kernel.wasm', import.meta.url));
  const counting = new WebAssembly.Module(new Uint8Array(countingModule(plain, () => coverage.place())));
  const memory = new WebAssembly.Memory({ initial: 32, maximum: 64 });
  const imports = { env: { memory }, fuzz: { counters: coverage.memory } };
  const { exports } = new WebAssembly.Instance(counting, imports);
  const text = Buffer.from('{"a":[1,true,null,"x"]} ');
  const at = 0x50000;
  new Uint8Array(memory.buffer).set(text, at);
  const parse = exports['parse'] as (at: number, end: number, tape: number, maxNodes: number) => number;
  assert.equal(parse(at, at + text.length, 0x60000, 100), 0);
  const reached = coverage.takeNews();
  assert.ok(reached > 20, `${reached} places`);
  coverage.reset();
  assert.equal(parse(at, at + text.length - 3, 0x60000, 100), -1);
  assert.ok(coverage.takeNews() > 0, 'another way is news');
});

test('of many inputs those that reach something of their own are kept', async () => {
  const coverage = new Coverage();
  const target = brittleTarget(coverage, new Set());
  const inputs = ['x', 'y', 'b', 'bu', 'bug', 'zzz', 'bug!'].map((text) => new Uint8Array(Buffer.from(text)));
  const kept = await distil(inputs, target, coverage, 100);
  assert.deepEqual(kept.map((input) => Buffer.from(input).toString()).sort(), ['b', 'bu', 'bug']);
});
