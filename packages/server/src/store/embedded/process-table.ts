/**
 * Reads /proc: which processes live, since when, and in which directory (proc(5)). Signals nobody.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface LiveProcess {
  readonly pid: number;
  /** Clock ticks since boot: with the pid, it names one process for good. */
  readonly startTicks: number;
}

/** Undefined for a process that is gone; a zombie has released everything and counts as gone. */
export function liveProcess(pid: number): LiveProcess | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the name in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return { pid, startTicks: Number(fields[19]) };
}

/** Live PostgreSQL processes working in `directory` (a real path): the postmaster and its children chdir there. */
export function postgresProcessesIn(directory: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readlinkSync(`/proc/${pid}/cwd`) === directory &&
          /\/postgres(?: \(deleted\))?$/.test(readlinkSync(`/proc/${pid}/exe`)) &&
          liveProcess(pid) !== undefined
        );
      } catch {
        return false;
      }
    });
}
