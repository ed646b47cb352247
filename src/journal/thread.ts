/**
 * The inside of the journal thread: does what it is told, in order, and tells what came of it. It blocks on the disk so
 * that nobody else has to. Nothing the disk does ends it: every failure is an answer.
 */
import { join } from 'node:path';
import { nodeDisk, type Disk } from './disk.ts';
import type { FolderLock } from './lock.ts';
import type { Failure, FromJournal, JournalWorkerData, ToJournal } from './message.ts';
import { NoteFile } from './note.ts';
import { SegmentFiles } from './segmentfiles.ts';

/** The thread's end of a `MessagePort`. */
export interface JournalPort {
  on(event: 'message', listener: (message: ToJournal) => void): unknown;
  postMessage(message: FromJournal, transfer: ArrayBuffer[]): void;
  close(): void;
}

export function runJournalThread(port: JournalPort, { folder }: JournalWorkerData, disk: Disk = nodeDisk): void {
  const files = new SegmentFiles(folder, disk);
  const notes = new NoteFile(folder, disk);
  let lock: FolderLock | null = null;
  const tell = (message: FromJournal, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

  try {
    disk.makeFolder(folder);
    lock = disk.lock(join(folder, 'lock'));
    const segments = files.scan();
    tell({ kind: 'ready', segments, note: notes.read() });
  } catch (error) {
    lock?.release();
    tell({ kind: 'unusable', message: failureOf(error).message });
    port.close();
    return;
  }

  port.on('message', (message: ToJournal) => {
    switch (message.kind) {
      case 'append': {
        const { group, chunks } = message;
        const failure = attempt(() => files.append(message.segment, chunks));
        if (failure !== null) return tell({ kind: 'failed', group, failure });
        const buffers = chunks.flatMap(({ frames, body }) => (body === null ? [frames] : [frames, body]));
        return tell({ kind: 'committed', group, chunks }, buffers);
      }
      case 'read': {
        const { segment, offset } = message;
        const noteFailure = attempt(() => notes.write({ segment, offset, index: -1, deathCount: 0 }));
        const failure = attempt(() => {
          const found = files.read(segment, offset);
          const { chunk } = found;
          const buffers = chunk === null ? [] : chunk.body === null ? [chunk.frames] : [chunk.frames, chunk.body];
          tell({ kind: 'read', noteFailure, ...found }, buffers);
        });
        if (failure !== null) tell({ kind: 'unreadable', segment, failure });
        return;
      }
      case 'note': {
        const { note } = message;
        return tell({
          kind: 'noted',
          note,
          failure: attempt(() => (note === null ? notes.clear() : notes.write(note))),
        });
      }
      case 'remove': {
        const { segment } = message;
        const failure = attempt(() => files.remove(segment));
        return tell(failure === null ? { kind: 'removed', segment } : { kind: 'unremovable', segment, failure });
      }
      case 'probe':
        return tell({ kind: 'probed', failure: attempt(() => files.probe()) });
      case 'close': {
        // A stop is no death.
        const failures = [attempt(() => notes.clear()), attempt(() => files.close())];
        lock?.release();
        tell({ kind: 'closed', failure: failures.find((failure) => failure !== null) ?? null });
        port.close();
        return;
      }
    }
  });
}

/** Null when it went well. */
function attempt(what: () => void): Failure | null {
  try {
    what();
    return null;
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return { code, message: error instanceof Error ? error.message : String(error) };
}
