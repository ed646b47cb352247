/** Loaded before the program: on SIGUSR2 its main thread stands still for as long as STALL_MS says. */
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const stallMs = Number(process.env['STALL_MS']);
  process.on('SIGUSR2', () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs));
}
