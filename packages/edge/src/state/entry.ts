/**
 * What the edge remembers over a restart: types of the state and of the journal's entries, and how an entry changes the
 * state. Pure; files are store.ts's.
 */
import type { AgentRule } from '@levee/contract/agent.ts';

/** Why the kernel refused a rule, by uuid. */
export type Refusals = Readonly<Record<string, string>>;

export interface DesiredState {
  readonly cursor: string;
  /** The kernel's table bears this once it is in this state; undefined: it is not known to be. */
  readonly mark: string | undefined;
  readonly refused: Refusals;
  readonly rules: ReadonlyMap<string, AgentRule>;
}

/** Written before the kernel is asked: its table bears `mark` exactly if the change is in force. */
export interface ChangeEntry {
  readonly cursor: string;
  readonly mark: string;
  readonly upsert: readonly AgentRule[];
  readonly remove: readonly string[];
}

/** Written after the kernel refused some rules and took the others: all refusals that stand. */
export interface SettledEntry {
  readonly mark: string;
  readonly refused: Refusals;
}

export type JournalEntry = ChangeEntry | SettledEntry;

export const isChange = (entry: JournalEntry): entry is ChangeEntry => 'cursor' in entry;

/** The state after an entry. A change lifts the refusal of every rule that it names: the rule is tried again. */
export function applyEntry(state: DesiredState, entry: JournalEntry, rules: Map<string, AgentRule>): DesiredState {
  if (!isChange(entry)) return { ...state, mark: entry.mark, refused: entry.refused };
  const refused: Record<string, string> = { ...state.refused };
  for (const rule of entry.upsert) {
    rules.set(rule.uuid, rule);
    delete refused[rule.uuid];
  }
  for (const uuid of entry.remove) {
    rules.delete(uuid);
    delete refused[uuid];
  }
  return { cursor: entry.cursor, mark: entry.mark, refused, rules };
}
