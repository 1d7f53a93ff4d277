/**
 * Which filters settle, for a test: those chosen go on for good, the others have done so at once. Owns the elements of the
 * sets that say it; must never wait for a clock.
 */
import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import { filterSet } from '@levee/core/nftables/names.ts';
import type { KernelPath } from './kernel-path.ts';

/** `entries` are loaded, those among them that are filters whose kind settles are changed. */
export function settle(kernel: KernelPath, entries: Iterable<Entry>, settles: (filter: Filter) => boolean): void {
  const lines: string[] = [];
  for (const entry of entries) {
    if (!isFilter(entry) || !entry.kind.enforcement.settles) continue;
    const set = `inet levee ${filterSet('settling', entry.uuid)}`;
    lines.push(`flush set ${set}\n`);
    // nfnetlink's number of the family.
    if (settles(entry)) lines.push(`add element ${set} { ${entry.dst.family === 4 ? 2 : 10} timeout 1h }\n`);
  }
  kernel.load(lines.join(''));
}
