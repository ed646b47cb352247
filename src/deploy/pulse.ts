/**
 * Signs of life on connections that have nothing to say, so that no proxy and no client takes them for dead. One timer for all,
 * and none while there are no members.
 */
export interface Pulse {
  /** Called at every beat until it is left. */
  join(member: () => void): void;
  leave(member: () => void): void;
}

export function createPulse(intervalMs: number): Pulse {
  const members = new Set<() => void>();
  let timer: NodeJS.Timeout | null = null;
  return {
    join: (member) => {
      members.add(member);
      timer ??= setInterval(() => {
        for (const beat of [...members]) beat();
      }, intervalMs);
    },
    leave: (member) => {
      members.delete(member);
      if (members.size > 0 || timer === null) return;
      clearInterval(timer);
      timer = null;
    },
  };
}
