/**
 * What lies in a spool's folder, for people: read, marked and moved file by file, beside a running process or without one.
 * Beside one only that is done which it expects of others: state bytes are set (it looks at them before it sends), complete
 * segments of dead letters are deleted, and segments are put into the inbox under their final name.
 */
import { existsSync } from 'node:fs';
import { open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { FILE_MODE, nodeBackgroundDisk } from '../../core/disk.ts';
import { filesOf, readSegment } from './folder.ts';
import { deadFolder, inboxFolder, shardFolders } from './home.ts';
import { decodeRecord, encodeRecord, isLive, RecordState, STATE_OFFSET } from './record.ts';
import type { RecordMeta, StoredBatch } from './record.ts';
import { nameOfSegment, OPEN_SUFFIX, SEALED_SUFFIX, segmentName } from './segment.ts';

export type Kind = 'waiting' | 'dead' | 'body';

export interface Entry {
  /** Of a record: its segment's name and its offset in base 36. Of a body: its hash. */
  readonly id: string;
  readonly kind: Kind;
  readonly createdMs: number;
  /** 0 where nobody knows. */
  readonly runCount: number;
  readonly lengthBytes: number;
  /** The API key: for {@link keyName}, not for people. */
  readonly apiKey: string;
  readonly wasAttempted: boolean;
  readonly code: string;
  readonly reason: string;
  readonly path: string;
  readonly offset: number;
}

export interface Inventory {
  /** Oldest first within a kind: waiting, dead, bodies. */
  readonly entries: readonly Entry[];
  /** Stretches of bytes that are no intact record. */
  readonly damagedCount: number;
}

const SUFFIX_OF_BODY = '.json';

/** Of a folder that is not there: nothing. Rejects with the file system's error. */
export async function takeInventory(folder: string): Promise<Inventory> {
  if (!existsSync(folder)) return { entries: [], damagedCount: 0 };
  const entries: Entry[] = [];
  let damagedCount = 0;
  const waiting = [...shardFolders(folder), inboxFolder(folder)].map((where) => [where, 'waiting'] as const);
  for (const [where, kind] of [...waiting, [deadFolder(folder), 'dead'] as const]) {
    for (const file of await filesOf(where)) {
      const name = nameOfSegment(file);
      if (name === null) continue;
      const path = join(where, file);
      try {
        for await (const { offset, lengthBytes, ...record } of readSegment(path)) {
          if (record.meta === null) damagedCount++;
          else if (isLive(record.state)) {
            entries.push({
              ...entryOf(record.meta, record.state),
              id: idOf(name, offset),
              kind,
              lengthBytes,
              path,
              offset,
            });
          }
        }
      } catch (error) {
        // Delivered, or renamed, while we looked: a running process goes on with its work.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  }
  entries.push(...(await bodiesIn(deadFolder(folder))));
  return { entries, damagedCount };
}

/** Null when it is gone or damaged. */
export async function readEntry({ path, offset, lengthBytes }: Entry): Promise<StoredBatch | null> {
  const file = await unlessGone(path, (name) => nodeBackgroundDisk.open(name, 'read'));
  if (file === null) return null;
  try {
    return decodeRecord(await file.read(offset, lengthBytes));
  } finally {
    await file.close();
  }
}

/**
 * Puts dead letters into the inbox as one segment, then marks them as done where they were. Returns those that were
 * damaged or gone, which are left alone.
 */
export async function resend(folder: string, entries: readonly Entry[], nowMs: number): Promise<Entry[]> {
  const inbox = inboxFolder(folder);
  await nodeBackgroundDisk.makeFolder(inbox);
  const draft = join(inbox, `${segmentName(nowMs, 'resent')}.tmp`);
  const left: Entry[] = [];
  const sent: Entry[] = [];
  const file = await open(draft, 'wx', FILE_MODE);
  try {
    for (const entry of entries) {
      const stored = entry.kind === 'dead' ? await readEntry(entry) : null;
      if (stored === null || !isLive(stored.state)) {
        left.push(entry);
        continue;
      }
      // As if it came now: its age begins anew, and it has not been tried.
      const meta = { ...stored.meta, createdMs: nowMs, attempts: 0, repeated: false };
      for (const piece of encodeRecord(stored.batch, meta)) await file.appendFile(piece);
      sent.push(entry);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  if (sent.length === 0) {
    await unlink(draft);
    return left;
  }
  await rename(draft, draft.replace(/\.tmp$/, SEALED_SUFFIX));
  await nodeBackgroundDisk.flushFolder(inbox);
  await giveUp(sent, RecordState.Done, false);
  return left;
}

/**
 * Returns those that were still there: others have been delivered or dropped since they were listed. `mayDelete`: no process
 * has the folder, so that what is empty thereby goes as well.
 */
export async function purge(entries: readonly Entry[], mayDelete: boolean): Promise<Entry[]> {
  const purged: Entry[] = [];
  for (const entry of entries) {
    if (entry.kind !== 'body') continue;
    await unlessGone(entry.path.slice(0, -SUFFIX_OF_BODY.length) + '.body', unlink);
    if ((await unlessGone(entry.path, unlink)) !== null) purged.push(entry);
  }
  const records = entries.filter(({ kind }) => kind !== 'body');
  return [...purged, ...(await giveUp(records, RecordState.Purged, mayDelete))];
}

/**
 * Sets state bytes, and deletes segments in which nothing is left: those of dead letters once they are complete. Returns
 * those that were not settled before.
 */
async function giveUp(entries: readonly Entry[], state: number, mayDelete: boolean): Promise<Entry[]> {
  const byPath = new Map<string, Entry[]>();
  for (const entry of entries) byPath.set(entry.path, [...(byPath.get(entry.path) ?? []), entry]);
  const givenUp: Entry[] = [];
  for (const [path, list] of byPath) {
    const file = await unlessGone(path, (name) => open(name, 'r+'));
    if (file === null) continue;
    try {
      // The byte behind the state is the operator's own: a process may be writing the state at this very moment.
      const bytes = state === RecordState.Purged ? Uint8Array.of(state, state) : Uint8Array.of(state);
      for (const entry of list) {
        const at = entry.offset + STATE_OFFSET;
        const [before = RecordState.Done] = (await file.read(Buffer.alloc(1), 0, 1, at)).buffer;
        if (!isLive(before)) continue;
        await file.write(bytes, 0, bytes.length, at);
        givenUp.push(entry);
      }
    } finally {
      await file.close();
    }
    const isComplete = list[0]?.kind === 'dead' && path.endsWith(SEALED_SUFFIX);
    if (!mayDelete && !isComplete) continue;
    await unlessGone(path, async (name) => {
      if (!(await hasLive(name))) await unlink(name);
    });
  }
  return givenUp;
}

/** A running process goes on with its work: it may have completed the segment since we looked, or have delivered it. */
async function unlessGone<T>(path: string, opened: (name: string) => Promise<T>): Promise<T | null> {
  const complete = path.endsWith(OPEN_SUFFIX) ? path.slice(0, -OPEN_SUFFIX.length) + SEALED_SUFFIX : path;
  for (const name of new Set([path, complete])) {
    try {
      return await opened(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return null;
}

async function hasLive(path: string): Promise<boolean> {
  for await (const record of readSegment(path)) if (record.meta !== null && isLive(record.state)) return true;
  return false;
}

function idOf(name: string, offset: number): string {
  return `${name}.${offset.toString(36)}`;
}

function entryOf(meta: RecordMeta, state: number): Omit<Entry, 'id' | 'kind' | 'lengthBytes' | 'path' | 'offset'> {
  return {
    createdMs: meta.createdMs,
    runCount: meta.runs,
    apiKey: meta.key,
    wasAttempted: meta.attempts > 0 || state === RecordState.Attempted,
    code: meta.code ?? '',
    reason: meta.reason ?? '',
  };
}

/** Request bodies that nothing could be made of: see journal/deadbody.ts. */
async function bodiesIn(folder: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const file of await filesOf(folder)) {
    if (!/^[0-9a-f]{64}\.json$/.test(file)) continue;
    const path = join(folder, file);
    const facts = JSON.parse(await readFile(path, 'utf8')) as { apiKey: string; reason: string; bodyBytes: number };
    const { mtimeMs } = await stat(path);
    entries.push({
      id: basename(file, SUFFIX_OF_BODY),
      kind: 'body',
      createdMs: mtimeMs,
      runCount: 0,
      lengthBytes: facts.bodyBytes,
      apiKey: facts.apiKey,
      wasAttempted: true,
      code: 'set-aside',
      reason: facts.reason,
      path,
      offset: 0,
    });
  }
  return entries;
}
