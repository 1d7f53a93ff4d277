/**
 * Gives a test's process a network namespace of its own, which goes with it: nothing to name, nothing to clean up, and
 * no way to touch the machine's tables. Never used outside of tests.
 */
import { execFileSync } from 'node:child_process';
import koffi from 'koffi';

const newNetwork = 0x40000000; // CLONE_NEWNET

/**
 * Undefined on success, else why the tests that need it must be left out. Call it before anything else: the threads of
 * libuv stay where they are, but sockets belong to the namespace of the thread that opens them, and that is this one.
 */
export function enterOwnNamespace(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  try {
    execFileSync('nft', ['--version']);
  } catch {
    return 'needs nft';
  }
  const unshare = koffi.load('libc.so.6').func('int unshare(int flags)') as (flags: number) => number;
  if (unshare(newNetwork) !== 0) return `no network namespace (errno ${koffi.errno()})`;
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  return undefined;
}

/** Runs nft as some other program would. */
export function nft(text: string): string {
  return execFileSync('nft', ['-f', '-'], { input: text, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
}
