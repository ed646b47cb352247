/** Where the databases are. Plain data, so that a graph worker can be told the same. */
import { join } from 'node:path';

export type StoreLocation =
  | {
      engine: 'sqlite';
      /** Folder of both files; made when it is missing. */
      folder: string;
      /** `full` also survives a power cut of the last commits; `normal` survives any crash of the process. */
      synchronous: 'normal' | 'full';
    }
  | { engine: 'postgres'; url: string; poolSize: number };

/** Where checkpoints and store items are: what a graph worker opens for itself. */
export type StateLocation =
  | { engine: 'sqlite'; path: string; synchronous: 'normal' | 'full' }
  | { engine: 'postgres'; url: string; poolSize: number };

/**
 * SQLite has one writer per file. Control tables and graph state are two files, so that a graph worker that writes a checkpoint
 * never makes the main thread wait for its lock.
 */
export function controlPath(folder: string): string {
  return join(folder, 'deployment.sqlite');
}

export function stateLocation(store: StoreLocation, poolSize = 2): StateLocation {
  if (store.engine === 'postgres') return { engine: 'postgres', url: store.url, poolSize };
  return { engine: 'sqlite', path: join(store.folder, 'state.sqlite'), synchronous: store.synchronous };
}
