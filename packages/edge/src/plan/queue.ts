/**
 * What has arrived and waits for its turn. Owns merging: of several changes of a rule the last one counts, a snapshot
 * makes everything before it void. Holds no state beyond what waits.
 */
import type { AgentRule } from '@levee/contract/agent.ts';

export interface Work {
  /** Everything up to here is in this work or in what was taken before. */
  readonly cursor: string;
  /** The whole desired state; then `upsert` and `remove` are empty. */
  readonly snapshot: Map<string, AgentRule> | undefined;
  readonly upsert: ReadonlyMap<string, AgentRule>;
  readonly remove: ReadonlySet<string>;
  /** `performance.now()` when the first of it arrived. */
  readonly arrivedAt: number;
}

export interface WorkQueue {
  /** The cursor of the last thing that arrived; undefined before the first. */
  readonly cursor: string | undefined;
  readonly waiting: boolean;
  snapshot(cursor: string, rules: readonly AgentRule[], now: number): void;
  changes(cursor: string, upsert: readonly AgentRule[], remove: readonly string[], now: number): void;
  take(): Work | undefined;
}

export function createWorkQueue(cursor?: string): WorkQueue {
  let last = cursor;
  let snapshot: Map<string, AgentRule> | undefined;
  let upsert = new Map<string, AgentRule>();
  let remove = new Set<string>();
  let arrivedAt: number | undefined;
  return {
    get cursor() {
      return last;
    },
    get waiting() {
      return arrivedAt !== undefined;
    },
    snapshot(newCursor, rules, now) {
      last = newCursor;
      snapshot = new Map(rules.map((rule) => [rule.uuid, rule]));
      upsert = new Map();
      remove = new Set();
      arrivedAt ??= now;
    },
    changes(newCursor, newUpsert, newRemove, now) {
      last = newCursor;
      arrivedAt ??= now;
      for (const uuid of newRemove) {
        if (snapshot) snapshot.delete(uuid);
        else {
          upsert.delete(uuid);
          remove.add(uuid);
        }
      }
      for (const rule of newUpsert) {
        if (snapshot) snapshot.set(rule.uuid, rule);
        else {
          remove.delete(rule.uuid);
          upsert.set(rule.uuid, rule);
        }
      }
    },
    take() {
      if (arrivedAt === undefined || last === undefined) return undefined;
      const work: Work = { cursor: last, snapshot, upsert, remove, arrivedAt };
      snapshot = undefined;
      upsert = new Map();
      remove = new Set();
      arrivedAt = undefined;
      return work;
    },
  };
}
