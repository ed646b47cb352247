/** Where the CPU went, thread by thread: sums up the profiles that `node --cpu-prof` leaves in a folder. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { renderTable } from './report.ts';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const IDLE = '(idle)';

/** One table a thread, the busiest first: time in each function itself, in percent of what the thread did not idle. */
export function renderProfiles(folder: string, functionCount: number): string {
  const threads = readdirSync(folder)
    .filter((file) => file.endsWith('.cpuprofile'))
    .map((file) => ({ file, selfUs: selfTimes(JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile) }))
    .map(({ file, selfUs }) => {
      const idleUs = selfUs.get(IDLE) ?? 0;
      selfUs.delete(IDLE);
      return { file, idleUs, busyUs: [...selfUs.values()].reduce((sum, us) => sum + us, 0), selfUs };
    })
    .sort((a, b) => b.busyUs - a.busyUs);
  return threads
    .map(({ file, idleUs, busyUs, selfUs }) => {
      const rows = [...selfUs]
        .sort((a, b) => b[1] - a[1])
        .slice(0, functionCount)
        .map(([name, us]) => [name, `${((us / busyUs) * 100).toFixed(1)} %`]);
      const title = `${file}: busy ${(busyUs / 1e6).toFixed(1)} s, idle ${(idleUs / 1e6).toFixed(1)} s`;
      return `${title}\n${renderTable(['function', 'self'], rows)}`;
    })
    .join('\n\n');
}

function selfTimes(profile: CpuProfile): Map<string, number> {
  const names = new Map(
    profile.nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      url === '' ? functionName : `${functionName} ${basename(url)}:${lineNumber + 1}`,
    ]),
  );
  const selfUs = new Map<string, number>();
  for (const [index, node] of profile.samples.entries()) {
    const name = names.get(node) ?? 'unknown';
    selfUs.set(name, (selfUs.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  return selfUs;
}
