/**
 * Finds out whether this process may and can drive nftables here, and by what. Owns the sentences that users read when
 * nothing is enforced; changes nothing in the kernel.
 */
import { openNftCommand, runNft } from './command.ts';
import { openNftLibrary } from './library.ts';
import { openNetlink } from './netlink.ts';
import type { NftDriver, NftKernel } from './port.ts';

export interface KernelAccess {
  readonly driver: NftDriver;
  /** Undefined where netlink sockets cannot be had: no drift check, counters by listings. */
  readonly kernel: NftKernel | undefined;
}

export type Choice =
  | { readonly ok: true; readonly access: KernelAccess }
  | { readonly ok: false; readonly reason: string };

/** The oldest release that the compiler's text was proven with. */
const oldest = [1, 0, 6] as const;

/** The numbers of `nftables v1.0.6 (Lester Gooch #5)`; undefined when it is something else. */
export function parseNftVersion(text: string): readonly number[] | undefined {
  const match = /\bv(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)] : undefined;
}

export function isOlder(version: readonly number[], than: readonly number[]): boolean {
  for (const [index, part] of than.entries()) {
    const own = version[index] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}

/** What the probe asks the kernel to judge: enough to make nft read what other tables there are. */
const probe = (table: string): string =>
  `add table inet ${table}\nadd set inet ${table} probe { type ipv4_addr; }\nadd element inet ${table} probe { 192.0.2.1 }\n`;

export async function chooseKernel(table: string, prefer: 'library' | 'command' = 'library'): Promise<Choice> {
  if (process.platform !== 'linux') return { ok: false, reason: `not Linux: ${process.platform} has no nftables` };
  let said: string;
  try {
    const outcome = await runNft(['--version'], '');
    said = outcome.output.trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return {
      ok: false,
      reason: code === 'ENOENT' ? 'nft not installed: no such command' : `nft cannot be run: ${code}`,
    };
  }
  const version = parseNftVersion(said);
  if (version === undefined) return { ok: false, reason: `nft does not say its version: ${said.slice(0, 80)}` };
  const text = version.join('.');
  if (isOlder(version, oldest)) return { ok: false, reason: `nft ${text} is too old: ${oldest.join('.')} is needed` };

  // In a process of its own: a release that meets a table made by a much newer one can crash, and take the caller along.
  const outcome = await runNft(['-c', '-f', '-'], probe(table));
  if (outcome.signal !== null) {
    return { ok: false, reason: `nft ${text} crashes on the tables that are loaded: a newer nft made one of them` };
  }
  if (outcome.status !== 0) {
    if (/Operation not permitted/.test(outcome.message)) {
      return { ok: false, reason: 'not root: the kernel needs CAP_NET_ADMIN to change packet filtering' };
    }
    return { ok: false, reason: `nft ${text} does not work here: ${outcome.message.split('\n')[0]}` };
  }
  return { ok: true, access: { driver: openDriver(text, prefer), kernel: openKernel(table) } };
}

function openDriver(version: string, prefer: 'library' | 'command'): NftDriver {
  if (prefer === 'library') {
    try {
      return openNftLibrary(version);
    } catch {
      // No libnftables.so.1, or not this platform's: the command does the same, some milliseconds slower.
    }
  }
  return openNftCommand(version);
}

function openKernel(table: string): NftKernel | undefined {
  try {
    return openNetlink(table);
  } catch {
    return undefined;
  }
}
