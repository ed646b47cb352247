/** A small disk of its own for what the proxy keeps, which can be filled up. Needs root, and a kernel that lets it mount. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { MiB } from '../../src/core/units.ts';

export interface SmallDisk {
  fill(): void;
  free(): void;
  unmount(): void;
}

const FILLER = 'filler';

/** The reason, where there can be none. */
export function mountSmallDisk(folder: string, sizeMiB: number): SmallDisk | string {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m,mode=0700`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    return error instanceof Error ? error.message.trim().split('\n').join(' ') : String(error);
  }
  const filler = join(folder, FILLER);
  return {
    fill: () => {
      const file = openSync(filler, 'a');
      try {
        for (const bytes of [MiB, 4096]) {
          const chunk = Buffer.alloc(bytes, 1);
          for (;;) if (!tryWrite(file, chunk)) break;
        }
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler, { force: true }),
    unmount: () => void execFileSync('umount', ['--lazy', folder], { stdio: 'pipe' }),
  };
}

function tryWrite(file: number, chunk: Buffer): boolean {
  try {
    return writeSync(file, chunk) === chunk.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
