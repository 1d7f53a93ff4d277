/**
 * How full the connection-tracking table of this network namespace is (nf_conntrack-sysctl, kernel documentation).
 */
import { readFile } from 'node:fs/promises';

export interface ConntrackUse {
  readonly entries: number;
  readonly limit: number;
}

/** Undefined while conntrack is not loaded. */
export async function readConntrackUse(directory = '/proc/sys/net/netfilter'): Promise<ConntrackUse | undefined> {
  try {
    const [entries, limit] = await Promise.all(
      ['nf_conntrack_count', 'nf_conntrack_max'].map((name) => readFile(`${directory}/${name}`, 'utf8')),
    );
    return { entries: Number(entries), limit: Number(limit) };
  } catch {
    return undefined;
  }
}
