/** Class names are global: two pages that style one name restyle each other, as happened to the picture of the pipeline. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const FOLDER = new URL('../../src/console/app/style/', import.meta.url);
/** Of the shell: every page may lean on it and adjust it. */
const SHARED = ['base.css', 'tokens.css', 'main.css'];

test('no class is styled at the top of two pages’ style sheets', () => {
  const owners = new Map<string, string>();
  for (const file of readdirSync(FOLDER).filter((name) => !SHARED.includes(name))) {
    const names = readFileSync(new URL(file, FOLDER), 'utf8').matchAll(/^\.([a-z][\w-]*)\s*[{,:]/gm);
    for (const [, name = ''] of names) {
      const owner = owners.get(name) ?? file;
      assert.equal(owner, file, `.${name} is styled in ${owner} and in ${file}`);
      owners.set(name, file);
    }
  }
  assert.ok(owners.size > 100, `${owners.size} names were found`);
});
