/** What the operating system says about a process: CPU time of all its threads, memory. Linux only. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ThreadCpu {
  readonly threadId: number;
  readonly name: string;
  readonly cpuSec: number;
}

export interface ProcessMeter {
  /** User and system time of all threads, the ended ones included. */
  cpuSec(): number;
  /** The same for each thread alive, from the scheduler's nanosecond clock. */
  threads(): ThreadCpu[];
  rssBytes(): number;
  /** Highest resident set since the process started. */
  peakRssBytes(): number;
}

export function meterProcess(pid: number): ProcessMeter {
  const ticksPerSec = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  const statusBytes = (field: string): number => {
    const line = readFileSync(`/proc/${pid}/status`, 'utf8')
      .split('\n')
      .find((candidate) => candidate.startsWith(field));
    return Number(/\d+/.exec(line ?? '')?.[0] ?? Number.NaN) * 1024;
  };
  return {
    cpuSec: () => {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The command name, in parentheses, may hold spaces; the fields after it are 3 onwards, user and system time 14 and 15.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSec;
    },
    threads: () =>
      readdirSync(`/proc/${pid}/task`).map((thread) => ({
        threadId: Number(thread),
        name: readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8').trim(),
        cpuSec: Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9,
      })),
    rssBytes: () => statusBytes('VmRSS:'),
    peakRssBytes: () => statusBytes('VmHWM:'),
  };
}

/**
 * CPU time that the calling thread has had, in milliseconds: unlike the clock on the wall it does not run while others
 * have the core. Where the system does not tell (no procfs), the clock on the wall.
 */
export function threadTimeMs(): number {
  // The kernel brings the running thread's own figure up to date when it is asked for the process's.
  process.cpuUsage();
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return performance.now();
  }
}
