/**
 * Keeps a state directory to one process. Owns the lock file; the lock itself is the kernel's (flock(2)), so it goes with
 * the process however that ends, and never has to be broken by hand.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';

export type Lock =
  | { readonly ok: true; release(): void }
  /** `holder`: the process id that the file names, for the message. */
  | { readonly ok: false; readonly holder: string };

const exclusiveNonBlocking = 2 | 4;

/** Makes the directory (mode 0700) when it is absent. `file`: the name of the lock file in it. */
export function lockDirectory(directory: string, file: string): Lock {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, file);
  const fd = openSync(path, 'a+', 0o600);
  const flock = koffi.load('libc.so.6').func('int flock(int fd, int operation)') as (fd: number, op: number) => number;
  if (flock(fd, exclusiveNonBlocking) !== 0) {
    closeSync(fd);
    return { ok: false, holder: readFileSync(path, 'utf8').trim() };
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { ok: true, release: () => closeSync(fd) };
}
