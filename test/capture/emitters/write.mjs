/** Puts a request body into the folder named by the first argument. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];

export function write(name, body) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.pb`), body);
}
