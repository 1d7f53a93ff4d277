/**
 * Whether a table of ours may still drop packets while this edge is dry: by looking where the kernel lets itself be
 * asked, else by what an earlier run wrote down. Owns the sentences about it; never removes a table.
 */
import { tableName } from '@levee/core/nftables/names.ts';
import { proxiedFlowsTable } from '@levee/core/nftables/proxied-flows.ts';
import { openNetlink } from '../drivers/nft/netlink.ts';
import { type TablePlace, type TableRecord, tableRecordFile, thisPlace } from '../state/table-record.ts';

export type Left = 'gone' | 'here' | 'perhaps here' | 'perhaps elsewhere';

/** `seen`: whether a table of our name is loaded in this namespace; undefined where nobody may look. */
export function judgeLeft(record: TablePlace | undefined, here: TablePlace, seen: boolean | undefined): Left {
  if (seen === true) return 'here';
  if (record === undefined || differs(record.boot_id, here.boot_id)) return 'gone';
  if (differs(record.netns, here.netns)) return 'perhaps elsewhere';
  return seen === false ? 'gone' : 'perhaps here';
}

function differs(a: string | null, b: string | null): boolean {
  return a !== null && b !== null && a !== b;
}

/** What is to be added to the reason for being dry; undefined when no table is left. */
export function describeLeft(left: Left): string | undefined {
  const remove = `nft delete table inet ${tableName} (and inet ${proxiedFlowsTable}, where a SYN proxy was in force)`;
  const forget = `then delete ${tableRecordFile} in the edge's state directory`;
  switch (left) {
    case 'gone':
      return undefined;
    case 'here':
      return `but an older table is still in force in the kernel; remove it: ${remove}`;
    case 'perhaps here':
      return `but a table that was loaded before may still be in force; remove it as root: ${remove}, ${forget}`;
    case 'perhaps elsewhere':
      return `but a table that was loaded before may still be in force in another network namespace; remove it there: ${remove}, ${forget}`;
  }
}

/** Looks now. A record of a table that is known to be gone is removed. */
export function lookForLeft(
  record: TableRecord,
  seen: () => boolean | undefined = isTableLoaded,
  here: TablePlace = thisPlace(),
): Left {
  const noted = record.read();
  const left = judgeLeft(noted, here, seen());
  if (left === 'gone' && noted !== undefined) record.forget();
  return left;
}

/** Undefined: this process may not ask, or there are no netlink sockets. */
function isTableLoaded(): boolean | undefined {
  try {
    const kernel = openNetlink(tableName);
    try {
      return kernel.isTableLoaded();
    } finally {
      kernel.close();
    }
  } catch {
    return undefined;
  }
}
