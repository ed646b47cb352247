/**
 * `npm run peer:compare`: the same graphs, the same questions, to this server and to the development server that LangChain publishes
 * (`@langchain/langgraph-api`), which is installed in a folder of its own for that. Prints every difference; exit code 1
 * when one is not explained. `-- --folder FOLDER` keeps the installation there, `-- --only TEXT` asks some of the questions.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer } from '../deploy-server.ts';
import { explanationOf } from './explained.ts';
import { createNotes, SCENARIOS, type Scenario } from './scenarios.ts';

const PEER_VERSION = '1.4.5';
const EXAMPLE_GRAPHS = ['echo', 'approval', 'nested'];
const FIXTURES = ['steps', 'misbehave'];
const READY_MS = 120_000;

const { values } = parseArgs({ options: { folder: { type: 'string' }, only: { type: 'string' } } });
const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'peer-'));
try {
  installPeer();
  const peer = await startPeer();
  const ours = await startServer({
    graphs: [...specs(EXAMPLES, ...EXAMPLE_GRAPHS), ...specs(FIXTURE_GRAPHS, ...FIXTURES)],
  });
  try {
    let unexplainedCount = 0;
    for (const scenario of SCENARIOS) {
      if (values.only !== undefined && !scenario.name.includes(values.only)) continue;
      const [there, here] = await Promise.all([notesOf(scenario, peer.url), notesOf(scenario, ours.url)]);
      unexplainedCount += report(scenario.name, differences(there, here));
    }
    console.log(`\n${unexplainedCount} differences without an explanation`);
    if (unexplainedCount > 0) process.exitCode = 1;
  } finally {
    await ours.close();
    await stop(peer.process);
  }
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

function installPeer(): void {
  mkdirSync(join(folder, 'graphs'), { recursive: true });
  for (const [from, wanted] of [
    [EXAMPLES, null],
    [FIXTURE_GRAPHS, FIXTURES],
  ] as const)
    for (const file of readdirSync(from))
      if (file.endsWith('.ts') && (wanted === null || wanted.includes(file.slice(0, -3))))
        copyFileSync(join(from, file), join(folder, 'graphs', file));
  const graphs = Object.fromEntries(
    [...EXAMPLE_GRAPHS, ...FIXTURES].map((name) => [name, `./graphs/${name}.ts:graph`]),
  );
  writeFileSync(join(folder, 'langgraph.json'), JSON.stringify({ node_version: '22', graphs }));
  if (existsSync(join(folder, 'node_modules/@langchain/langgraph-cli'))) return;
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
  ) as Record<'dependencies' | 'devDependencies', Record<string, string>>;
  const shared = Object.entries({ ...dependencies, typescript: devDependencies['typescript'] });
  const wanted = shared.filter(([name]) => name.startsWith('@langchain/') || name === 'typescript');
  const peers = { '@langchain/langgraph-api': PEER_VERSION, '@langchain/langgraph-cli': PEER_VERSION };
  const manifest = { private: true, type: 'module', dependencies: { ...Object.fromEntries(wanted), ...peers } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  execFileSync('npm', ['install', '--legacy-peer-deps', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' });
}

async function startPeer(): Promise<{ process: ChildProcess; url: string }> {
  const port = await freePort();
  const cli = join(folder, 'node_modules/.bin/langgraphjs');
  const words = ['dev', '--port', String(port), '--host', '127.0.0.1', '--no-browser', '--config', 'langgraph.json'];
  const child = spawn(cli, words, {
    cwd: folder,
    // A group of its own: it starts processes that it does not end with itself.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, LANGSMITH_TRACING: 'false' },
  });
  const url = `http://127.0.0.1:${port}`;
  for (const untilMs = Date.now() + READY_MS; ; await sleep(100)) {
    const response = await fetch(`${url}/ok`).catch(() => null);
    if (response?.ok === true) return { process: child, url };
    if (child.exitCode === null && Date.now() < untilMs) continue;
    await stop(child);
    throw new Error('the other server did not start');
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const exit = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await exit;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Lines; the same id or time is the same word wherever it stands. */
async function notesOf(scenario: Scenario, url: string): Promise<string[]> {
  const lines: string[] = [];
  const names = new Map<string, string>();
  const anonymous = (line: string): string =>
    line
      .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)/g, 'TIME')
      .replaceAll(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b[0-9a-f]{32}\b/g, (id) => {
        const known = names.get(id) ?? 'ID';
        names.set(id, known);
        return known;
      })
      .replaceAll(url, 'URL');
  await scenario.run(createNotes(url, (line) => lines.push(anonymous(line))));
  return lines;
}

interface Difference {
  /** The request that it belongs to. */
  about: string;
  side: 'there' | 'here';
  line: string;
}

/** By the longest common subsequence, request by request. */
function differences(there: readonly string[], here: readonly string[]): Difference[] {
  const lengths = Array.from({ length: there.length + 1 }, () => new Uint32Array(here.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = there.length - 1; i >= 0; i--)
    for (let j = here.length - 1; j >= 0; j--)
      (lengths[i] as Uint32Array)[j] =
        there[i] === here[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const found: Difference[] = [];
  let about = '';
  for (let i = 0, j = 0; i < there.length || j < here.length;) {
    const [left, right] = [there[i], here[j]];
    if (left !== undefined && left === right) {
      if (left.startsWith('> ') || left.startsWith('event ')) about = left;
      i++;
      j++;
    } else if (right === undefined || (left !== undefined && at(i + 1, j) >= at(i, j + 1))) {
      found.push({ about, side: 'there', line: left ?? '' });
      i++;
    } else {
      found.push({ about, side: 'here', line: right });
      j++;
    }
  }
  return found;
}

/** How many are not explained. */
function report(name: string, found: readonly Difference[]): number {
  const unexplained = found.filter((difference) => explanationOf(name, difference.line, difference.side) === null);
  const reasons = new Set(found.flatMap(({ line, side }) => explanationOf(name, line, side) ?? []));
  console.log(`${unexplained.length === 0 ? 'same' : 'DIFFERENT'}: ${name}`);
  for (const reason of reasons) console.log(`    decided: ${reason}`);
  for (const { about, side, line } of unexplained) console.log(`    ${about}\n      ${side}: ${line}`);
  return unexplained.length;
}
