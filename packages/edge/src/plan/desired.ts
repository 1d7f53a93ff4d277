/**
 * The desired rules and filters as they came, and which of them this router can enforce. Owns the step from wire fields to
 * an entry (through core's parsers) and the difference between two desired states; decides nothing about the kernel.
 */
import { filterKind } from '@levee/core/filter/catalogue.ts';
import type { Entry } from '@levee/core/filter/entry.ts';
import { parseFilter } from '@levee/core/filter/parse-filter.ts';
import { parseStoredRule } from '@levee/core/firewall/parse.ts';
import { type AgentEntry, isAgentFilter } from '../state/objects.ts';

export type Understood = { readonly ok: true; readonly entry: Entry } | { readonly ok: false; readonly reason: string };

export function understand(wire: AgentEntry): Understood {
  if (isAgentFilter(wire) && filterKind(wire.filter) === undefined) {
    return { ok: false, reason: `this router's agent knows no filters of kind ${wire.filter}: a newer release may` };
  }
  const { uuid, sequence, ...fields } = wire;
  const problemsOf = (problems: readonly { message: string }[]): Understood => ({
    ok: false,
    reason: problems.map(({ message }) => message).join('; '),
  });
  if (isAgentFilter(wire)) {
    const parsed = parseFilter(fields, { uuid, sequence });
    return parsed.ok ? { ok: true, entry: parsed.filter } : problemsOf(parsed.problems);
  }
  const parsed = parseStoredRule(fields, { uuid, sequence });
  return parsed.ok ? { ok: true, entry: parsed.rule } : problemsOf(parsed.problems);
}

export interface EntryDelta {
  readonly upsert: readonly Entry[];
  /** uuids; also those whose new form is left out, so that no former one stays in force. */
  readonly remove: readonly string[];
}

export interface DesiredEntries {
  readonly entries: ReadonlyMap<string, AgentEntry>;
  /** Of the entries. */
  readonly filterCount: number;
  /** Why an entry is left out, by uuid: it is not understood, or it is beyond this router. */
  readonly leftOut: ReadonlyMap<string, string>;
  set(entry: AgentEntry): void;
  delete(uuid: string): void;
  /** What is to be in force of these uuids, as they are now. */
  delta(uuids: Iterable<string>, except?: (uuid: string) => boolean): EntryDelta;
  /** All that can be enforced. */
  all(except?: (uuid: string) => boolean): Entry[];
  /** The uuids that differ between this state and another one. */
  differences(other: ReadonlyMap<string, AgentEntry>): string[];
}

/** Why an entry that is understood cannot be enforced by this router, as one line for its operator. */
export type Obstacle = (entry: Entry) => string | undefined;

/** Takes `entries` as its own. `knownLeftOut`: what an earlier reading of the same ones found. */
export function createDesiredEntries(
  obstacle: Obstacle,
  entries: Map<string, AgentEntry> = new Map(),
  knownLeftOut: ReadonlyMap<string, string> = new Map(),
): DesiredEntries {
  const leftOut = new Map(knownLeftOut);
  let filterCount = 0;
  for (const entry of entries.values()) if (isAgentFilter(entry)) filterCount += 1;
  const drop = (uuid: string): void => {
    const known = entries.get(uuid);
    if (known && isAgentFilter(known)) filterCount -= 1;
    entries.delete(uuid);
  };
  const read = (wire: AgentEntry): Entry | undefined => {
    const understood = understand(wire);
    const reason = understood.ok ? obstacle(understood.entry) : understood.reason;
    if (reason !== undefined) leftOut.set(wire.uuid, reason);
    else leftOut.delete(wire.uuid);
    return understood.ok && reason === undefined ? understood.entry : undefined;
  };
  return {
    entries,
    leftOut,
    get filterCount() {
      return filterCount;
    },
    set(entry) {
      drop(entry.uuid);
      entries.set(entry.uuid, entry);
      if (isAgentFilter(entry)) filterCount += 1;
    },
    delete(uuid) {
      drop(uuid);
      leftOut.delete(uuid);
    },
    delta(uuids, except) {
      const upsert: Entry[] = [];
      const remove: string[] = [];
      for (const uuid of uuids) {
        const wire = entries.get(uuid);
        if (wire === undefined) leftOut.delete(uuid);
        const entry = wire && !except?.(uuid) ? read(wire) : undefined;
        if (entry) upsert.push(entry);
        else remove.push(uuid);
      }
      return { upsert, remove };
    },
    all(except) {
      const all: Entry[] = [];
      for (const wire of entries.values()) {
        const entry = except?.(wire.uuid) ? undefined : read(wire);
        if (entry) all.push(entry);
      }
      return all;
    },
    differences(other) {
      const different: string[] = [];
      for (const [uuid, wire] of other) {
        const own = entries.get(uuid);
        if (own === undefined || !isSame(own, wire)) different.push(uuid);
      }
      for (const uuid of entries.keys()) if (!other.has(uuid)) different.push(uuid);
      return different;
    },
  };
}

/** Both are canonical, with their fields in one order; a false difference costs a recompilation, nothing else. */
const isSame = (a: AgentEntry, b: AgentEntry): boolean => JSON.stringify(a) === JSON.stringify(b);
