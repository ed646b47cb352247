/**
 * Request bodies that nothing can be made of, kept among the dead letters for people to look at: two files a body, named
 * by the SHA-256 of its bytes, so that the same body is kept once. `<hash>.body` is the body as it was received,
 * `<hash>.json` says what it is and why it is here ({@link DeadBodyFacts}); it is written last.
 */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { nodeBackgroundDisk, outOfSpace, type BackgroundDisk } from '../core/disk.ts';
import type { BodyCoding, BodyEncoding } from '../core/intake.ts';

export interface DeadBody {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  /** Unix time. */
  readonly receivedUs: number;
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`, in hex. */
  readonly hash: string;
  readonly reason: string;
}

/** What the JSON file holds. */
export interface DeadBodyFacts extends Omit<DeadBody, 'bytes' | 'receivedUs'> {
  readonly kind: 'body';
  readonly receivedAt: string;
  readonly bodyBytes: number;
}

/** Where they are kept, for the journal. */
export interface DeadBodies {
  /** False: there is no room for it, nor will there be. */
  keep(body: DeadBody): Promise<boolean>;
  /** Of all that are kept. */
  hashes(): Promise<ReadonlySet<string>>;
  /** Whether this very body is kept, and not an equal one that came at another time. */
  holds(hash: string, receivedUs: number): Promise<boolean>;
}

export function openDeadBodies(
  folder: string,
  maxBytes: number,
  disk: BackgroundDisk = nodeBackgroundDisk,
): DeadBodies {
  return {
    keep: (body) => keepDeadBody(folder, body, maxBytes, disk),
    hashes: async () => {
      try {
        return new Set((await disk.list(folder)).flatMap((name) => /^([0-9a-f]{64})\.json$/.exec(name)?.[1] ?? []));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Set();
        throw error;
      }
    },
    holds: async (hash, receivedUs) => {
      const file = await disk.open(join(folder, `${hash}.json`), 'read');
      try {
        const text = (await file.read(0, await file.size())).toString('utf8');
        return (JSON.parse(text) as DeadBodyFacts).receivedAt === momentOf(receivedUs);
      } finally {
        await file.close();
      }
    },
  };
}

/** Its name. */
export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function momentOf(receivedUs: number): string {
  return new Date(receivedUs / 1000).toISOString();
}

/**
 * Of all bodies together at most `maxBytes` are kept: the oldest go. False: not kept, since it alone is larger. Rejects
 * with the file system's error.
 */
export async function keepDeadBody(
  folder: string,
  body: DeadBody,
  maxBytes: number,
  disk: BackgroundDisk = nodeBackgroundDisk,
): Promise<boolean> {
  if (body.bytes.length > maxBytes) return false;
  const { bytes, receivedUs, ...about } = body;
  const facts: DeadBodyFacts = {
    kind: 'body',
    ...about,
    receivedAt: momentOf(receivedUs),
    bodyBytes: bytes.length,
  };
  await disk.makeFolder(folder);
  await makeRoom(disk, folder, body, maxBytes);
  await writeWhole(disk, join(folder, `${body.hash}.body`), bytes);
  await writeWhole(disk, join(folder, `${body.hash}.json`), Buffer.from(`${JSON.stringify(facts, null, 2)}\n`));
  await disk.flushFolder(folder);
  return true;
}

async function makeRoom(
  disk: BackgroundDisk,
  folder: string,
  { hash, bytes }: DeadBody,
  maxBytes: number,
): Promise<void> {
  const kept: { hash: string; sizeBytes: number; changedMs: number }[] = [];
  for (const name of await disk.list(folder)) {
    const other = /^([0-9a-f]{64})\.body$/.exec(name)?.[1];
    if (other === undefined || other === hash) continue;
    kept.push({ hash: other, ...(await disk.about(join(folder, name))) });
  }
  kept.sort((a, b) => a.changedMs - b.changedMs);
  let totalBytes = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, bytes.length);
  for (const { hash: oldest, sizeBytes } of kept) {
    if (totalBytes <= maxBytes) return;
    for (const suffix of ['json', 'body']) await disk.remove(join(folder, `${oldest}.${suffix}`));
    totalBytes -= sizeBytes;
  }
}

/** The whole file or none, whatever happens meanwhile; under its name for good once the folder has been flushed. */
async function writeWhole(disk: BackgroundDisk, path: string, bytes: Uint8Array): Promise<void> {
  // Of its own: the same body may be on its way here twice.
  const draft = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  const file = await disk.create(draft);
  try {
    const writtenBytes = await file.write([bytes], 0);
    if (writtenBytes !== bytes.length) throw outOfSpace();
    await file.flush();
  } catch (error) {
    await file.close();
    await disk.remove(draft);
    throw error;
  }
  await file.close();
  await disk.rename(draft, path);
}
