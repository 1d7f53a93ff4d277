/**
 * Whether the table in the kernel is one that the stored state tells of, and at which of its points. Reads the mark, changes
 * nothing.
 */
import { applyEntry, type DesiredState, isChange, type Refusals } from '../state/desired-state.ts';
import type { AgentEntry } from '../state/objects.ts';
import type { LoadedState } from '../state/store.ts';

export interface AdoptionPoint {
  readonly mark: string;
  readonly refused: Refusals;
  readonly entries: Map<string, AgentEntry>;
  /** Changed after that point: to be installed. */
  readonly namedLater: ReadonlySet<string>;
}

export interface TableMarks {
  readonly marks: { fits(mark: string): boolean };
  readMark(): Promise<string | undefined>;
}

/** The last point of the journal whose mark the kernel's table bears. */
export async function findAdoptable(
  loaded: LoadedState,
  { marks, readMark }: TableMarks,
): Promise<AdoptionPoint | undefined> {
  const mark = await readMark();
  if (mark === undefined || !marks.fits(mark)) return undefined;
  let last = loaded.base.mark === mark ? 0 : -1;
  for (const [index, entry] of loaded.entries.entries()) if (entry.mark === mark) last = index + 1;
  if (last === -1) return undefined;
  const entries = new Map(loaded.base.entries);
  const objects = { entries, tunnels: new Map(loaded.base.tunnels) };
  let at: DesiredState = loaded.base;
  for (const entry of loaded.entries.slice(0, last)) at = applyEntry(at, entry, objects);
  const namedLater = new Set<string>();
  for (const entry of loaded.entries.slice(last)) {
    if (!isChange(entry)) continue;
    for (const { uuid } of entry.upsert) namedLater.add(uuid);
    for (const uuid of entry.remove) namedLater.add(uuid);
  }
  return { mark, refused: at.refused, entries, namedLater };
}
