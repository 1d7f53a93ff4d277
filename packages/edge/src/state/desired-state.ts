/**
 * What the edge remembers over a restart: types of the state and of the journal's entries, and how an entry changes the
 * state. Pure; files are store.ts's.
 */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import type { AgentEntry } from './objects.ts';

/** Why the kernel refused a rule or filter, by uuid. */
export type Refusals = Readonly<Record<string, string>>;

export interface DesiredState {
  readonly cursor: string;
  /**
   * The cursor covers every kind of object that this release knows. False: it covers rules alone, because an older
   * release wrote the state or an older control plane told of them; filters and tunnels are as they were known before.
   */
  readonly complete: boolean;
  /** The kernel's table bears this once it is in this state; undefined: it is not known to be. */
  readonly mark: string | undefined;
  readonly refused: Refusals;
  readonly entries: ReadonlyMap<string, AgentEntry>;
  readonly tunnels: ReadonlyMap<string, AgentTunnel>;
}

/** The maps of a state, for whoever may change them. */
export interface Objects {
  readonly entries: Map<string, AgentEntry>;
  readonly tunnels: Map<string, AgentTunnel>;
}

/** Written before the kernel is asked: its table bears `mark` exactly if the change is in force. */
export interface ChangeEntry {
  readonly cursor: string;
  readonly mark: string;
  readonly upsert: readonly AgentEntry[];
  readonly tunnels?: readonly AgentTunnel[];
  /** uuids of objects of any kind. */
  readonly remove: readonly string[];
  /** Only where it is false: from here on the cursor covers rules alone. */
  readonly complete?: false;
}

/** Written after the kernel refused some entries and took the others: all refusals that stand. */
export interface SettledEntry {
  readonly mark: string;
  readonly refused: Refusals;
}

export type JournalEntry = ChangeEntry | SettledEntry;

export const isChange = (entry: JournalEntry): entry is ChangeEntry => 'cursor' in entry;

/**
 * The state after an entry, which changes `objects`. A change lifts the refusal of every rule and filter that it names:
 * they are tried again.
 */
export function applyEntry(state: DesiredState, entry: JournalEntry, objects: Objects): DesiredState {
  if (!isChange(entry)) return { ...state, mark: entry.mark, refused: entry.refused };
  const refused: Record<string, string> = { ...state.refused };
  for (const wire of entry.upsert) {
    objects.entries.set(wire.uuid, wire);
    delete refused[wire.uuid];
  }
  for (const tunnel of entry.tunnels ?? []) objects.tunnels.set(tunnel.uuid, tunnel);
  for (const uuid of entry.remove) {
    objects.entries.delete(uuid);
    objects.tunnels.delete(uuid);
    delete refused[uuid];
  }
  return {
    cursor: entry.cursor,
    complete: state.complete && entry.complete !== false,
    mark: entry.mark,
    refused,
    entries: objects.entries,
    tunnels: objects.tunnels,
  };
}
