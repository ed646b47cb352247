/** The README's configuration table comes from the code. `UPDATE_README=1` writes it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { variableTable } from '../../src/cli.ts';

const file = new URL('../../README.md', import.meta.url);
const BEGIN = '<!-- configuration table: kept equal to the code by test/unit/readme.test.ts -->';
const END = '<!-- end of configuration table -->';

test('the README lists every variable as the code knows it', async () => {
  const text = await readFile(file, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const [table, after] = rest?.split(END) ?? [];
  assert.ok(before !== undefined && table !== undefined && after !== undefined, 'the table has lost its marks');
  if (process.env['UPDATE_README'] === '1') {
    await writeFile(file, `${before}${BEGIN}\n\n${variableTable()}\n\n${END}${after}`);
    return;
  }
  assert.deepEqual(rows(table), rows(variableTable()), 'run the test with UPDATE_README=1');
});

/** Cells without the padding that the formatter adds. */
function rows(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .filter((line) => !/^\|[\s|:-]+$/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}
