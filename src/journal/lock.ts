/**
 * One process a folder. SQLite's lock on a file of its own: the operating system gives it up when the process ends,
 * however it ends, and it holds across containers that share the folder; a file with a process id in it does neither.
 */
import { DatabaseSync } from 'node:sqlite';

export interface FolderLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/** Throws a readable line when another process has it, else the system's error. */
export function lockFolder(file: string): FolderLock {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    // Kept until the end, and written nowhere.
    database.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    throw new Error(`${file} is locked: another process uses this folder`, { cause: error });
  }
  return { release: () => database.close() };
}
