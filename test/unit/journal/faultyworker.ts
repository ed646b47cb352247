/** The journal thread as in workers/journal.ts, on a disk that fails as the file beside its folder says. */
import { existsSync, readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { Fault } from '../../../src/core/outcome.ts';
import { nodeDisk, type Disk } from '../../../src/journal/disk.ts';
import type { JournalWorkerData } from '../../../src/journal/message.ts';
import { runJournalThread } from '../../../src/journal/thread.ts';

if (parentPort === null) throw new Fault('a worker');
const data = workerData as JournalWorkerData;
const control = `${data.folder}.control`;

/** `''` works, a code fails with it, `exit` ends the thread, `stall` waits until it is something else. */
function obey(): void {
  const order = existsSync(control) ? readFileSync(control, 'utf8') : '';
  switch (order) {
    case '':
      return;
    case 'exit':
      return process.exit(1);
    case 'stall':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      return obey();
    default:
      throw Object.assign(new Error(`${order}: as the test says`), { code: order });
  }
}

const disk: Disk = {
  ...nodeDisk,
  flush: (file) => {
    obey();
    nodeDisk.flush(file);
  },
};
runJournalThread(parentPort, data, disk);
