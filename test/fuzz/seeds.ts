/** The committed inputs of a target: one line of base64 each, after comment lines that say what it is. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Seed {
  /** The comment above it. */
  readonly title: string;
  readonly bytes: Uint8Array;
}

/** `seeds/` holds where mutation begins, `found/` what was wrong once. */
export type SeedFolder = 'seeds' | 'found';

export function readSeeds(folder: SeedFolder, target: string): Seed[] {
  const file = seedFile(folder, target);
  if (!existsSync(file)) return [];
  const seeds: Seed[] = [];
  let title: string[] = [];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line.startsWith('#')) title.push(line.slice(1).trim());
    else if (line !== '') {
      seeds.push({ title: title.join(' '), bytes: new Uint8Array(Buffer.from(line === '-' ? '' : line, 'base64')) });
      title = [];
    }
  }
  return seeds;
}

export function writeSeeds(target: string, seeds: readonly Seed[]): void {
  const lines = seeds.map(({ title, bytes }) => {
    const line = Buffer.from(bytes).toString('base64') || '-';
    return title === '' ? line : `# ${title}\n${line}`;
  });
  writeFileSync(seedFile('seeds', target), `${lines.join('\n')}\n`);
}

function seedFile(folder: SeedFolder, target: string): string {
  return fileURLToPath(new URL(`./${folder}/${target}.txt`, import.meta.url));
}
