#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// Where `npm start` begins. Plain JavaScript, so that every Node can read it and an unfit one is told in one line:
// the rest is TypeScript that Node strips itself (from 22.18 on), and the HTTP server's binary is built for Node 22.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major === 22 && minor >= 18) {
  await import('./main.ts');
} else {
  process.stderr.write(
    `Node 22 from 22.18 on is needed, this is ${process.version}: install it, or let npm run the install script of the package "node" and start with npm.\n`,
  );
  process.exitCode = 1;
}
