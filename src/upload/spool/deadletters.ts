/**
 * Dead letters on disk: a folder of segments, to which each shard's thread appends under a name of its own. They wait for
 * a person: `collector-proxy spool` lists, shows, resends and purges them. What cannot be written is counted and gone.
 */
import { join } from 'node:path';
import type { Counters } from '../../core/counters.ts';
import { nodeBackgroundDisk, type BackgroundDisk } from '../../core/disk.ts';
import type { Clock } from '../../core/lifecycle.ts';
import type { Log } from '../../core/log.ts';
import { MINUTE_MS } from '../../core/units.ts';
import type { DeadLetters } from '../deadletter.ts';
import { filesOf, readSegment } from './folder.ts';
import { SegmentLog } from './log.ts';
import type { LogSettings } from './log.ts';
import { encodeRecord, isLive, metaOf } from './record.ts';
import { nameOfSegment, SEALED_SUFFIX } from './segment.ts';

export interface DeadLetterSettings extends LogSettings {
  /** Of the whole folder; the oldest go. Null where another shard sees to that. */
  readonly limits: DeadLetterLimits | null;
}

export interface DeadLetterLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

const SWEEP_INTERVAL_MS = MINUTE_MS;

/** `counting` hears of all of them first. */
export function openDeadLetters(
  settings: DeadLetterSettings,
  counting: DeadLetters,
  parts: { readonly counters: Counters; readonly clock: Clock; readonly log: Log; readonly disk?: BackgroundDisk },
): DeadLetters {
  const { counters, clock, log, disk = nodeBackgroundDisk } = parts;
  const segments = new SegmentLog(settings, clock, disk);
  const stop = new AbortController();
  const failed = (error: unknown, what: string): void => {
    counters.add('spool_failures');
    const { code, message } = error as NodeJS.ErrnoException;
    log.error({ code: code ?? message, folder: settings.folder }, what);
  };
  segments.onTrouble = (error) => {
    counters.add('spool_failures');
    const { code, message } = error as NodeJS.ErrnoException;
    log.warn({ code: code ?? message, folder: settings.folder }, 'a segment of dead letters could not be completed');
  };

  const sweep = async (limits: DeadLetterLimits): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        const runCount = await removeOldest(settings.folder, limits, clock.nowMs(), disk);
        counters.add('dead_letters_removed', runCount);
        if (runCount > 0) log.warn({ runs: runCount }, 'the oldest dead letters are removed: too many or too old');
      } catch (error) {
        failed(error, 'old dead letters cannot be looked for: they stay');
      }
      await clock.sleep(SWEEP_INTERVAL_MS, stop.signal);
    }
  };
  const sweeping = settings.limits === null ? Promise.resolve() : sweep(settings.limits);

  return {
    async put(batch, code, reason) {
      await counting.put(batch, code, reason);
      const meta = { createdMs: clock.nowMs(), attempts: 0, repeated: false, truncated: false, code, reason };
      try {
        const { synced } = await segments.append(encodeRecord(batch, metaOf(batch, meta)));
        const failure = await synced;
        if (failure !== null) throw failure;
      } catch (error) {
        failed(error, 'dead letters cannot be written: their runs are lost');
      }
    },
    async close() {
      stop.abort();
      await sweeping;
      await segments.close();
    },
  };
}

/** Deletes complete segments until the folder is within its limits, and returns how many runs they still held. */
export async function removeOldest(
  folder: string,
  limits: DeadLetterLimits,
  nowMs: number,
  disk: BackgroundDisk = nodeBackgroundDisk,
): Promise<number> {
  const found: { path: string; sizeBytes: number; changedMs: number }[] = [];
  for (const file of await filesOf(folder, disk)) {
    if (nameOfSegment(file) === null) continue;
    const path = join(folder, file);
    found.push({ path, ...(await disk.about(path)) });
  }
  let totalBytes = found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let runCount = 0;
  for (const { path, sizeBytes, changedMs } of found) {
    const isOld = nowMs - changedMs > limits.maxAgeMs;
    if (totalBytes <= limits.maxBytes && !isOld) continue;
    if (!path.endsWith(SEALED_SUFFIX)) continue;
    for await (const record of readSegment(path, disk)) {
      if (record.meta !== null && isLive(record.state)) runCount += record.meta.runs;
    }
    await disk.remove(path);
    totalBytes -= sizeBytes;
  }
  return runCount;
}
