/**
 * Captures the fixtures anew: installs the emitters in a temporary folder, runs them against stand-ins for models, and
 * writes what they export as OTLP protobuf to `test/fixtures/<emitter>/<scenario>.pb`, the expected records beside it as
 * JSON, made by the plain translator. Whoever captures reads the difference before committing it: that is the review.
 *
 * The emitters never become dependencies of this project; their versions stand in `package.json` and `python.json` here.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { defaultSettings } from '../oracle/settings.ts';
import { textOf } from '../oracle/record.ts';
import { translateBody } from '../oracle/translate.ts';
import { handWritten } from './handwritten.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const fixtures = fileURLToPath(new URL('../fixtures/emitters/', import.meta.url));

/** Modules that others import; every other one is an emitter. */
const shared = ['exporter.mjs', 'write.mjs', 'openai.mjs', 'langchain.mjs', 'vercel.mjs', 'vercel-7-models.mjs'];

interface PythonEmitter {
  readonly emitter: string;
  readonly packages: readonly string[];
  readonly script: string;
  readonly args: readonly string[];
}

function run(command: string, args: readonly string[], cwd: string): void {
  console.log(`${basename(command)} ${args.join(' ')}`);
  // Some emitters name their service after the program: a bare name then, not this machine's path.
  const argv0 = command === process.execPath ? 'node' : command;
  const { status, error } = spawnSync(command, args, { cwd, argv0, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ended with ${status}`);
}

function captureJavaScript(work: string): void {
  cpSync(join(here, 'package.json'), join(work, 'package.json'));
  cpSync(join(here, 'emitters'), join(work, 'emitters'), { recursive: true });
  // Their peer ranges exclude each other; the scripts of these packages are not needed.
  run('npm', ['install', '--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund'], work);
  for (const file of readdirSync(join(work, 'emitters')).filter((name) => name.endsWith('.mjs'))) {
    if (shared.includes(file)) continue;
    run(process.execPath, [`emitters/${file}`, join(work, 'out', basename(file, '.mjs'))], work);
  }
}

/** Fixtures of Python emitters stay as they are where there is no Python. */
function capturePython(work: string): void {
  try {
    run('python3', ['--version'], work);
  } catch {
    console.log('no python3: the fixtures of Python emitters are kept');
    return;
  }
  const emitters = JSON.parse(readFileSync(join(here, 'python.json'), 'utf8')) as PythonEmitter[];
  for (const { emitter, packages, script, args } of emitters) {
    const environment = join(work, `python-${emitter}`);
    run('python3', ['-m', 'venv', environment], work);
    run(join(environment, 'bin/pip'), ['install', '--quiet', ...packages], work);
    const python = join(environment, 'bin/python');
    run(python, ['-W', 'ignore', `emitters/${script}`, join(work, 'out', emitter), ...args], work);
  }
}

function writeHandWritten(work: string): void {
  for (const [emitter, scenarios] of Object.entries(handWritten())) {
    mkdirSync(join(work, 'out', emitter), { recursive: true });
    for (const [name, body] of Object.entries(scenarios)) writeFileSync(join(work, 'out', emitter, `${name}.pb`), body);
  }
}

function keep(work: string): void {
  for (const emitter of readdirSync(join(work, 'out'))) {
    const target = join(fixtures, emitter);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    for (const file of readdirSync(join(work, 'out', emitter))) {
      const body = readFileSync(join(work, 'out', emitter, file));
      const { records } = translateBody(body, 'protobuf', defaultSettings);
      writeFileSync(join(target, file), body);
      writeFileSync(join(target, file.replace(/\.pb$/, '.json')), `${textOf(records)}\n`);
    }
  }
}

const work = mkdtempSync(join(tmpdir(), 'capture-'));
try {
  captureJavaScript(work);
  capturePython(work);
  writeHandWritten(work);
  keep(work);
} finally {
  rmSync(work, { recursive: true, force: true });
}
