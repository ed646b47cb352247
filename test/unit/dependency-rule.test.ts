/** A guard that has never failed is not a guard: the linter must object to what the architecture forbids. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import assert from 'node:assert/strict';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Linter {
  lintText(
    text: string,
    options: { filePath: string },
  ): Promise<{ messages: { ruleId: string | null; message: string }[] }[]>;
}

/** ESLint 9.9 ships no types; this is the little of it that is used. */
const { ESLint } = createRequire(import.meta.url)('eslint') as {
  ESLint: new (options: { cwd: string; overrideConfigFile: string }) => Linter;
};

function linter(): Linter {
  return new ESLint({ cwd: root, overrideConfigFile: `${root}/.eslint.config.js` });
}

/** Ids of the rules that object to `text` standing in the existing file `path` (typed rules need a file of the project). */
async function objections(eslint: Linter, path: string, text: string): Promise<string[]> {
  const [result] = await eslint.lintText(text, { filePath: `${root}/${path}` });
  return (result?.messages ?? []).map((message) => message.ruleId ?? `fatal: ${message.message}`);
}

test('the linter objects to a stage that imports its neighbour', async () => {
  const text = await readFile(`${root}/test/fixtures/dependency-rule/acceptor-that-reaches-into-upload.ts`, 'utf8');
  const eslint = linter();
  assert.deepEqual(await objections(eslint, 'src/accept/reply.ts', text), ['@typescript-eslint/no-restricted-imports']);
  const allowed = text.replace('../upload/batch.ts', '../core/outcome.ts');
  assert.deepEqual(await objections(eslint, 'src/accept/reply.ts', allowed), []);
});

test('the linter objects to core naming an edge, to importing the root, and to a dependency away from its home', async () => {
  const eslint = linter();
  const cases: [path: string, text: string][] = [
    ['src/core/units.ts', `export { accept } from '../accept/reply.ts';\n`],
    ['src/core/units.ts', `export { config } from '../config.ts';\n`],
    ['src/decode/decoder.ts', `export { start } from '../../workers/ship.ts';\n`],
    ['src/decode/decoder.ts', `export { App } from 'uWebSockets.js';\n`],
    ['src/accept/reply.ts', `export { Piscina } from 'piscina';\n`],
  ];
  for (const [path, text] of cases) {
    assert.deepEqual(
      await objections(eslint, path, text),
      ['@typescript-eslint/no-restricted-imports'],
      `${path}: ${text}`,
    );
  }
});

test('the console may name what others answer, and no more', async () => {
  const eslint = linter();
  const path = 'src/console/console.ts';
  assert.deepEqual(await objections(eslint, path, `export type { Status } from '../backend/api.ts';\n`), []);
  const named = await objections(eslint, path, `export { createForward } from '../backend/forward.ts';\n`);
  assert.deepEqual(named, ['@typescript-eslint/no-restricted-imports']);
  const unnamed = await objections(eslint, path, `export type { Batch } from '../upload/batch.ts';\n`);
  assert.deepEqual(unnamed, ['@typescript-eslint/no-restricted-imports']);
});

test('the linter objects to environment reads below the configuration, to module state and to floating promises', async () => {
  const eslint = linter();
  const path = 'src/core/units.ts';
  assert.deepEqual(await objections(eslint, path, 'export const home = process.env;\n'), ['no-restricted-syntax']);
  assert.deepEqual(await objections(eslint, path, 'export let count = 0;\nexport const f = () => count++;\n'), [
    'no-restricted-syntax',
  ]);
  assert.deepEqual(await objections(eslint, path, 'export function f(): void {\n  Promise.resolve(1);\n}\n'), [
    '@typescript-eslint/no-floating-promises',
  ]);
});
