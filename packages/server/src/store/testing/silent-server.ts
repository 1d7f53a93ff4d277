/** Stops all processes of a test's own PostgreSQL where they are: it is there, and answers nothing. Test code only. */
import { readdirSync, readFileSync } from 'node:fs';

/** `postmaster`: its process id. The function that it gives lets them go on; to be called in any case. */
export function silenceServer(postmaster: number): () => void {
  const stopped: number[] = [];
  const stop = (pid: number) => {
    process.kill(pid, 'SIGSTOP');
    stopped.push(pid);
  };
  // First, so that no child is begun after the others were counted.
  stop(postmaster);
  for (const pid of childrenOf(postmaster)) stop(pid);
  return () => {
    for (const pid of stopped.splice(0)) process.kill(pid, 'SIGCONT');
  };
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

/** proc(5): after the name in brackets, which may hold anything, come the state and the parent. */
function parentOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    // It ended meanwhile.
    return undefined;
  }
}
