/** The preload that keeps stripped sources: Node's own compiler must not be loaded in any thread. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PRELOAD = fileURLToPath(new URL('../../src/typestrip.js', import.meta.url));
const SAY = `console.log(said, process.moduleLoadList.some((name) => name.includes('amaro')) ? 'compiler' : 'bare');`;

/** A checkout with the preload and one program, which starts a thread of TypeScript as well. */
async function checkout(
  t: TestContext,
): Promise<{ folder: string; start: (...args: string[]) => ReturnType<typeof run> }> {
  const folder = await mkdtemp(join(tmpdir(), 'typestrip-'));
  t.after(() => rm(folder, { recursive: true }));
  await cp(PRELOAD, join(folder, 'src/typestrip.js'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await cp(PRELOAD, join(folder, 'workers/unused.js'));
  await writeFile(join(folder, 'workers/thread.ts'), `const said: string = 'thread'; ${SAY}`);
  await writeFile(
    join(folder, 'src/program.ts'),
    `import { Worker } from 'node:worker_threads';
     const said: string = 'main';
     ${SAY}
     new Worker(new URL('../workers/thread.ts', import.meta.url));`,
  );
  return { folder, start: (...args) => run(process.execPath, [...args, join(folder, 'src/program.ts')]) };
}

test('no thread strips types itself, from the first start on', async (t) => {
  const { folder, start } = await checkout(t);
  const preload = ['--import', pathToFileURL(join(folder, 'src/typestrip.js')).href];

  assert.equal(String((await start()).stdout), 'main compiler\nthread compiler\n', 'without the preload');
  for (const [what, args] of [
    ['first start', preload],
    ['second start', preload],
  ] as const) {
    const { stdout, stderr } = await start(...args);
    assert.equal(String(stdout), 'main bare\nthread bare\n', what);
    assert.equal(String(stderr), '', what);
  }
});

test('a changed file is stripped anew and the old text is removed', async (t) => {
  const { folder, start } = await checkout(t);
  const preload = ['--import', pathToFileURL(join(folder, 'src/typestrip.js')).href];
  const cache = join(folder, 'node_modules/.cache/collector-proxy');

  await start(...preload);
  const before = await readdir(cache);
  await writeFile(join(folder, 'workers/thread.ts'), `const said: string = 'changed'; ${SAY}`);
  const { stdout } = await start(...preload);

  assert.equal(String(stdout), 'main bare\nchanged bare\n');
  const after = await readdir(cache);
  assert.equal(before.length, 2);
  assert.equal(after.length, 2);
  assert.equal(after.filter((name) => before.includes(name)).length, 1);
});

test('without a place for the cache it starts all the same and says what that costs', async (t) => {
  const { folder, start } = await checkout(t);
  await writeFile(join(folder, 'node_modules'), 'a file where the folder would be');

  const { stdout, stderr } = await start('--import', pathToFileURL(join(folder, 'src/typestrip.js')).href);

  assert.equal(String(stdout), 'main compiler\nthread compiler\n');
  assert.match(String(stderr), /no cache of stripped types, which costs memory: .*(ENOTDIR|EEXIST)/);
});
