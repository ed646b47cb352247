/**
 * The spool's folder as a whole. One process at a time has it:
 *
 * | Name      | What                                                                                           |
 * | --------- | ---------------------------------------------------------------------------------------------- |
 * | `lock`    | an SQLite file that the process keeps locked: the lock ends with the process, however that ends |
 * | `shard-N` | segments of shard N, which its thread alone touches                                             |
 * | `dead`    | dead letters: segments of all shards                                                            |
 * | `inbox`   | segments to be sent, put there by others under their final name                                 |
 */
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nodeBackgroundDisk, type BackgroundDisk } from '../../core/disk.ts';
import { nameOfSegment, OPEN_SUFFIX, SEALED_SUFFIX } from './segment.ts';

export function shardFolder(folder: string, shard: number): string {
  return join(folder, `shard-${shard}`);
}

export function deadFolder(folder: string): string {
  return join(folder, 'dead');
}

export function inboxFolder(folder: string): string {
  return join(folder, 'inbox');
}

/** Of the shards of whichever process; in order. */
export function shardFolders(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /^shard-\d+$/.test(name))
    .sort((a, b) => Number(a.slice(6)) - Number(b.slice(6)))
    .map((name) => join(folder, name));
}

export interface Home {
  /** Lets others have it. */
  release(): void;
}

/** Of a folder that is there. Null: another process has it. Throws the file system's error. */
export function lockHome(folder: string): Home | null {
  const file = join(folder, 'lock');
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    chmodSync(file, 0o600);
    // Kept until the end, and written nowhere.
    database.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
  return { release: () => database.close() };
}

const SQLITE_BUSY = 5;

/**
 * Makes the folders and gives every segment an owner: those of shards that are no more go to the others, and what a
 * killed process left open, or half-made, among the dead letters is sealed, or removed. For who has the lock, before the
 * shards are started. Rejects with the file system's error.
 */
export async function settleHome(
  folder: string,
  shardCount: number,
  disk: BackgroundDisk = nodeBackgroundDisk,
): Promise<void> {
  const dead = deadFolder(folder);
  for (let shard = 0; shard < shardCount; shard++) await disk.makeFolder(shardFolder(folder, shard));
  await disk.makeFolder(dead);
  await disk.makeFolder(inboxFolder(folder));
  for (const name of await disk.list(folder)) {
    const shard = Number(/^shard-(\d+)$/.exec(name)?.[1]);
    if (shard >= shardCount) await moveSegments(disk, join(folder, name), shardFolder(folder, shard % shardCount));
  }
  await moveSegments(disk, dead, dead);
  for (const name of await disk.list(dead)) {
    if (/^[0-9a-f]{64}\..*\.tmp$/.test(name)) await disk.remove(join(dead, name));
  }
}

async function moveSegments(disk: BackgroundDisk, from: string, to: string): Promise<void> {
  const files = await disk.list(from);
  let left = 0;
  for (const file of files) {
    const name = nameOfSegment(file);
    if (name === null) left++;
    else if (from !== to || file.endsWith(OPEN_SUFFIX)) {
      await disk.rename(join(from, file), join(to, name + SEALED_SUFFIX));
    }
  }
  if (from === to) return;
  // Their names are to be found in the one folder before they are gone from the other.
  await disk.flushFolder(to);
  if (left === 0) await disk.removeFolder(from);
}
