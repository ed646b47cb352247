/** Segments in a folder: found, taken over from whoever left them, read through. */
import { join } from 'node:path';
import { nodeBackgroundDisk, type BackgroundDisk } from '../../core/disk.ts';
import type { Segment } from './log.ts';
import { nameOfSegment, scanSegment, SEALED_SUFFIX } from './segment.ts';
import type { DamagedBytes, FoundRecord } from './segment.ts';

/**
 * The folder's segments, oldest first, sealed from here on: nobody else may be writing them. Files that are no segments are
 * left alone; a folder that is not there holds none.
 */
export async function takeSegments(disk: BackgroundDisk, folder: string): Promise<Segment[]> {
  const segments: Segment[] = [];
  for (const file of await filesOf(folder, disk)) {
    const segment = await takeSegment(disk, folder, file, folder);
    if (segment !== null) segments.push(segment);
  }
  return segments;
}

/** One of them, moved into the folder `moveTo`; null when the file is no segment. */
export async function takeSegment(
  disk: BackgroundDisk,
  folder: string,
  file: string,
  moveTo: string,
): Promise<Segment | null> {
  const name = nameOfSegment(file);
  if (name === null) return null;
  const path = join(moveTo, name + SEALED_SUFFIX);
  if (join(folder, file) !== path) await disk.rename(join(folder, file), path);
  const { sizeBytes, changedMs } = await disk.about(path);
  return { name, path, sizeBytes, sealed: true, newestMs: changedMs };
}

/** Names of its files in order; none when there is no such folder. */
export async function filesOf(folder: string, disk: BackgroundDisk = nodeBackgroundDisk): Promise<string[]> {
  try {
    return (await disk.list(folder)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Rejects, from its first step on, with the file system's error. */
export async function* readSegment(
  path: string,
  disk: BackgroundDisk = nodeBackgroundDisk,
): AsyncGenerator<FoundRecord | DamagedBytes> {
  const file = await disk.open(path, 'read');
  try {
    yield* scanSegment(file);
  } finally {
    await file.close();
  }
}
