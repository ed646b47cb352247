// Preloaded into every thread by `npm start` (`--import`). Node strips types with a WebAssembly compiler that it loads
// once a thread: 16 MiB of each, 50 MiB of an idle service with its three threads, and a third of its start-up time.
// This keeps the stripped text of every source file by the hash of the file, made by a process of its own the first
// time. Without a place to keep it (a read-only image that was not warmed) Node does it itself: the same, but larger.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../', import.meta.url);
const FOLDERS = ['src/', 'workers/'];
const CACHE = new URL('node_modules/.cache/collector-proxy/', ROOT);
const FILL = '--fill';

/** @param {Buffer} source */
function entryOf(source) {
  return new URL(`${createHash('sha256').update(process.version).update(source).digest('hex')}.js`, CACHE);
}

/**
 * Null for whatever reason it cannot be read: then it is made, and what hinders that is said.
 * @param {URL} entry
 */
function readEntry(entry) {
  try {
    return readFileSync(entry, 'utf8');
  } catch {
    return null;
  }
}

/**
 * Null for what is not TypeScript of this kind (the kernel's AssemblyScript): whoever imports it hears of it from Node.
 * @param {Buffer} source
 */
function stripped(source) {
  try {
    return module.stripTypeScriptTypes(source.toString());
  } catch (error) {
    if (/^ERR_(INVALID|UNSUPPORTED)_TYPESCRIPT_SYNTAX$/.test(error.code)) return null;
    throw error;
  }
}

/** Strips every source file that the cache lacks and removes what no file has any more. */
function fill() {
  mkdirSync(CACHE, { recursive: true });
  const wanted = new Set();
  for (const folder of FOLDERS) {
    for (const name of readdirSync(new URL(folder, ROOT), { recursive: true })) {
      if (!name.endsWith('.ts')) continue;
      const source = readFileSync(new URL(folder + name, ROOT));
      const entry = entryOf(source);
      wanted.add(fileURLToPath(entry));
      if (readEntry(entry) !== null) continue;
      const text = stripped(source);
      if (text === null) continue;
      // Renamed into place: another process that starts now reads all of it or nothing.
      const draft = new URL(`${entry.href}.${process.pid}`);
      writeFileSync(draft, text);
      renameSync(draft, entry);
    }
  }
  for (const name of readdirSync(CACHE)) {
    if (name.endsWith('.js') && !wanted.has(fileURLToPath(new URL(name, CACHE))))
      rmSync(new URL(name, CACHE), { force: true });
  }
}

function register() {
  let isFilled = false;
  const ours = FOLDERS.map((folder) => new URL(folder, ROOT).href);
  module.registerHooks({
    load(url, context, nextLoad) {
      if (!url.endsWith('.ts') || !ours.some((folder) => url.startsWith(folder))) return nextLoad(url, context);
      const entry = entryOf(readFileSync(new URL(url)));
      let source = readEntry(entry);
      if (source === null && !isFilled) {
        isFilled = true;
        try {
          execFileSync(process.execPath, [fileURLToPath(import.meta.url), FILL], { stdio: 'pipe' });
          source = readEntry(entry);
        } catch (error) {
          const reason = /^\w*Error.*$/m.exec(String(error.stderr ?? ''))?.[0] ?? error.message;
          process.emitWarning(`no cache of stripped types, which costs memory: ${reason}`);
        }
      }
      return source === null ? nextLoad(url, context) : { format: 'module', source, shortCircuit: true };
    },
  });
}

if (process.argv[2] === FILL) fill();
// A Node that lacks it is too old: src/start.js, which comes next, says so.
else if (module.registerHooks !== undefined) register();
