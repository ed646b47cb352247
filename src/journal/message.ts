/** What the main thread and the journal thread tell each other. Plain data; `workers/journal.ts` is the thread's side. */
import type { ReplayNote } from './note.ts';

export interface JournalWorkerData {
  /** Absolute. */
  readonly folder: string;
}

/** Frames in a row. Of the last one the body may lie in a buffer of its own, so that a large body is never copied. */
export interface Chunk {
  readonly frames: ArrayBuffer;
  readonly usedBytes: number;
  readonly body: ArrayBuffer | null;
  readonly bodyBytes: number;
}

export type ToJournal =
  /** Write the frames to the end of the segment, made when it does not exist, and flush them. Checksums are still missing. */
  | { kind: 'append'; segment: number; group: number; chunks: Chunk[] }
  /** Note that the frames from `offset` on are going to be decoded again, and tell them, as many as make a good task. */
  | { kind: 'read'; segment: number; offset: number }
  /** What is decoded again from now on; null for nothing. */
  | { kind: 'note'; note: ReplayNote | null }
  | { kind: 'remove'; segment: number }
  /** Try whether the disk takes anything. */
  | { kind: 'probe' }
  | { kind: 'close' };

export interface Failure {
  /** The system's, such as `ENOSPC`; empty when it has none. */
  readonly code: string;
  readonly message: string;
}

export type FromJournal =
  /** Locked the folder; these segments were there, oldest first, and this note of a process that did not end well. */
  | { kind: 'ready'; segments: { number: number; bytes: number }[]; note: ReplayNote | null }
  | { kind: 'unusable'; message: string }
  /** On disk. The buffers come back. */
  | { kind: 'committed'; group: number; chunks: Chunk[] }
  /** Perhaps in part; nothing more will be written to that segment. */
  | { kind: 'failed'; group: number; failure: Failure }
  | ({ kind: 'read'; noteFailure: Failure | null } & ReadFrames)
  | { kind: 'noted'; note: ReplayNote | null; failure: Failure | null }
  | { kind: 'unreadable'; segment: number; failure: Failure }
  | { kind: 'removed'; segment: number }
  | { kind: 'unremovable'; segment: number; failure: Failure }
  | { kind: 'probed'; failure: Failure | null }
  | { kind: 'closed'; failure: Failure | null };

export interface ReadFrames {
  readonly segment: number;
  /** The offset that was asked for. */
  readonly offset: number;
  /** Intact frames, all whole; null when there are none any more. */
  readonly chunk: Chunk | null;
  /** Where to go on; -1 at the end. */
  readonly next: number;
  /** Another version wrote it: it cannot be read, and must be left alone. */
  readonly isForeign: boolean;
  /** Damaged places that were left out, and their bytes. */
  readonly damagedCount: number;
  readonly damagedBytes: number;
  /** Behind the last intact frame of the file: what a crash in the midst of a write leaves, which was never acknowledged. */
  readonly tornBytes: number;
}
