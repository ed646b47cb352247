/**
 * `collector-proxy spool …`: looks into the spool's folder and acts on it, beside a running process or without one. In:
 * words of the command line. Out: text, and an exit code: 0 done, 1 failed or something was not found, 2 wrong arguments.
 */
import { USAGE_EXIT_CODE } from './cli.ts';
import { systemClock } from './core/lifecycle.ts';
import { showDuration, showSize } from './variables.ts';
import { plainBody } from './upload/batch.ts';
import { createCodec } from './upload/compress.ts';
import { keyName } from './upload/keyname.ts';
import { listRuns } from './upload/runlist.ts';
import { lockHome } from './upload/spool/home.ts';
import { purge, readEntry, resend, takeInventory, type Entry, type Kind } from './upload/spool/inventory.ts';
import { MINUTE_MS, SECOND_MS } from './core/units.ts';
import { existsSync } from 'node:fs';

export interface Terminal {
  write(text: string | Uint8Array): void;
  complain(line: string): void;
}

const FAILED_EXIT_CODE = 1;
const KINDS: readonly Kind[] = ['waiting', 'dead', 'body'];

export const SPOOL_HELP = `Usage: collector-proxy spool COMMAND [ID …] [FLAG …]     (in a checkout: npm run spool -- COMMAND …)

Looks into SPOOL_DIR: batches that wait for the backend, dead letters (what the backend refuses for good), and request
bodies that decode threads died of. Works beside a running process and without one.

Commands: list           what there is, oldest first
          show ID        one of them: what it holds and why it is there; --body writes its bytes
          resend ID …    dead letters are sent again: by the running process within seconds, or by the next one
          purge ID …     deletes; a running process that has one in its hands at this moment still sends it

Flags:    --all          instead of IDs: everything that the command and the other flags mean
          --kind KIND    only those: waiting, dead or body
          --json         for programs
          --body         with show: the plain body as it is uploaded
          --dir FOLDER   instead of SPOOL_DIR
          --help, -h     this text

Keys are named by the first eight digits of their SHA-256. Exit codes: 0 done, 1 failed or not found, 2 wrong arguments.
`;

interface Request {
  readonly verb: 'list' | 'show' | 'resend' | 'purge';
  readonly ids: readonly string[];
  readonly all: boolean;
  readonly kind: Kind | null;
  readonly json: boolean;
  readonly body: boolean;
  readonly folder: string | null;
}

/** `folder` is what the configuration says. */
export async function spoolCommand(
  words: readonly string[],
  folder: () => string | null,
  out: Terminal,
): Promise<number> {
  if (words.length === 0 || words.includes('--help') || words.includes('-h')) {
    out.write(SPOOL_HELP);
    return words.length === 0 ? USAGE_EXIT_CODE : 0;
  }
  const request = readRequest(words);
  if (typeof request === 'string') {
    out.complain(`${request}; spool --help shows what there is`);
    return USAGE_EXIT_CODE;
  }
  const where = request.folder ?? folder();
  if (where === null) return FAILED_EXIT_CODE;
  try {
    return await act(request, where, out);
  } catch (error) {
    out.complain(`spool ${request.verb}: ${(error as Error).message}`);
    return FAILED_EXIT_CODE;
  }
}

function readRequest(words: readonly string[]): Request | string {
  const [verb, ...rest] = words;
  if (verb !== 'list' && verb !== 'show' && verb !== 'resend' && verb !== 'purge') {
    return `unknown command ${JSON.stringify(verb)}`;
  }
  const ids: string[] = [];
  const flags = { all: false, json: false, body: false };
  let kind: Kind | null = null;
  let folder: string | null = null;
  while (rest.length > 0) {
    const word = rest.shift() ?? '';
    if (word === '--all' || word === '--json' || word === '--body') {
      flags[word.slice(2) as keyof typeof flags] = true;
    } else if (word === '--kind') {
      const given = rest.shift();
      kind = KINDS.find((one) => one === given) ?? null;
      if (kind === null) return '--kind needs waiting, dead or body';
    } else if (word === '--dir') {
      folder = rest.shift() ?? null;
      if (folder === null) return '--dir needs a folder';
    } else if (word.startsWith('-')) {
      return `unknown flag ${JSON.stringify(word)}`;
    } else {
      ids.push(word);
    }
  }
  if (verb === 'list' && ids.length > 0) return 'list takes no IDs; show does';
  if (verb === 'show' && ids.length !== 1) return 'show needs one ID';
  if ((verb === 'resend' || verb === 'purge') && flags.all === ids.length > 0) return `${verb} needs IDs, or --all`;
  return { verb, ids, kind, folder, ...flags };
}

async function act(request: Request, folder: string, out: Terminal): Promise<number> {
  const { entries, damagedCount } = await takeInventory(folder);
  const ofKind = entries.filter(({ kind }) => request.kind === null || kind === request.kind);
  if (request.verb === 'list') {
    out.write(request.json ? listJson(folder, ofKind, damagedCount) : listText(folder, ofKind, damagedCount));
    return 0;
  }
  const chosen = request.all || request.ids.length === 0 ? ofKind : ofKind.filter(({ id }) => request.ids.includes(id));
  const missing = request.ids.filter((id) => !chosen.some((entry) => entry.id === id));
  for (const id of missing) out.complain(`there is no ${id} in ${folder}`);
  if (missing.length > 0) return FAILED_EXIT_CODE;
  const [first] = chosen;
  if (request.verb === 'show') return first === undefined ? FAILED_EXIT_CODE : show(first, request, out);
  if (request.verb === 'resend') return sendAgain(folder, chosen, request, out);

  // While it is ours no process starts on it.
  const home = existsSync(folder) ? lockHome(folder) : null;
  let purged: readonly Entry[];
  try {
    purged = await purge(chosen, home !== null);
  } finally {
    home?.release();
  }
  const goneCount = chosen.length - purged.length;
  if (goneCount > 0) out.complain(`${goneCount} were gone already: delivered or dropped since they were looked up`);
  report(
    out,
    request,
    'purged',
    chosen.filter((entry) => purged.includes(entry)),
  );
  return 0;
}

async function show(entry: Entry, request: Request, out: Terminal): Promise<number> {
  if (entry.kind === 'body') {
    out.write(request.json ? `${JSON.stringify(facts(entry), null, 2)}\n` : factsText(entry));
    out.complain(`its bytes are in ${entry.path.replace(/\.json$/, '.body')}`);
    return 0;
  }
  const stored = await readEntry(entry);
  if (stored === null) {
    out.complain(`${entry.id} is gone, or damaged: its bytes are not what was written`);
    return FAILED_EXIT_CODE;
  }
  const plain = plainBody(stored.batch, createCodec(1));
  if (request.body) {
    out.write(plain);
    return 0;
  }
  const runs = listRuns(plain);
  if (request.json) {
    out.write(`${JSON.stringify({ ...facts(entry), runs }, null, 2)}\n`);
    return 0;
  }
  const lines = runs.map(({ id, name, fields }) => {
    const sizes = Object.entries(fields).map(([field, bytes]) => `${field} ${bytes}`);
    return `  ${id}  ${name}${sizes.length === 0 ? '' : `  (bytes: ${sizes.join(', ')})`}`;
  });
  out.write(`${factsText(entry)}runs:\n${lines.join('\n')}\n`);
  return 0;
}

async function sendAgain(folder: string, chosen: readonly Entry[], request: Request, out: Terminal): Promise<number> {
  const dead = chosen.filter(({ kind }) => kind === 'dead');
  for (const { id, kind } of request.all ? [] : chosen) {
    if (kind === 'waiting') out.complain(`${id} waits for the backend and is sent when that answers`);
    if (kind === 'body') out.complain(`${id} is a request body that decode threads died of: it is not sent`);
  }
  const left = dead.length === 0 ? [] : await resend(folder, dead, systemClock.nowMs());
  for (const { id } of left) out.complain(`${id} is damaged or gone`);
  report(
    out,
    request,
    'resent',
    dead.filter((entry) => !left.includes(entry)),
  );
  return left.length > 0 || (!request.all && dead.length < chosen.length) ? FAILED_EXIT_CODE : 0;
}

function report(out: Terminal, { json }: Request, what: 'purged' | 'resent', entries: readonly Entry[]): void {
  const runs = entries.reduce((sum, { runCount }) => sum + runCount, 0);
  if (json) out.write(`${JSON.stringify({ [what]: entries.map(({ id }) => id), runs })}\n`);
  else out.write(`${what} ${entries.length} with ${runs} runs\n`);
}

function facts(entry: Entry): Record<string, unknown> {
  const { id, kind, createdMs, runCount, lengthBytes, apiKey, wasAttempted, code, reason } = entry;
  return {
    id,
    kind,
    createdAt: new Date(createdMs).toISOString(),
    runs: runCount,
    bytes: lengthBytes,
    key: keyName(apiKey),
    attempted: wasAttempted,
    ...(code === '' ? {} : { code, reason }),
  };
}

function factsText(entry: Entry): string {
  return Object.entries(facts(entry))
    .map(([name, value]) => `${name}: ${String(value)}\n`)
    .join('');
}

function listJson(folder: string, entries: readonly Entry[], damagedCount: number): string {
  return `${JSON.stringify({ folder, entries: entries.map(facts), damagedRecords: damagedCount }, null, 2)}\n`;
}

function listText(folder: string, entries: readonly Entry[], damagedCount: number): string {
  const nowMs = systemClock.nowMs();
  const rows = entries.map((entry) => [
    entry.id,
    entry.kind,
    age(nowMs - entry.createdMs),
    String(entry.runCount),
    showSize(entry.lengthBytes),
    keyName(entry.apiKey),
    [entry.code, entry.reason]
      .filter((text) => text !== '')
      .join(': ')
      .replace(/\s+/g, ' ')
      .slice(0, 80),
  ]);
  const table = [['ID', 'KIND', 'AGE', 'RUNS', 'BYTES', 'KEY', 'REASON'], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = table.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const count = (kind: Kind): number => entries.filter((entry) => entry.kind === kind).length;
  const runs = entries.reduce((sum, { runCount }) => sum + runCount, 0);
  const bytes = entries.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
  return [
    ...(entries.length === 0 ? [] : lines),
    `${folder}: ${count('waiting')} batches waiting, ${count('dead')} dead letters, ${count('body')} bodies; ${runs} runs, ${showSize(bytes)} bytes`,
    ...(damagedCount === 0
      ? []
      : [`${damagedCount} records are damaged, torn or of another version, and are left out`]),
    '',
  ].join('\n');
}

function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS)) * SECOND_MS;
  return showDuration(seconds < MINUTE_MS ? seconds : Math.floor(seconds / MINUTE_MS) * MINUTE_MS);
}
