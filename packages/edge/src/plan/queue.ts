/**
 * What has arrived and waits for its turn. Owns merging: of several changes of an object the last one counts, a snapshot
 * makes everything before it void. Holds no state beyond what waits.
 */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import type { Objects } from '../state/desired-state.ts';
import type { AgentEntry, AgentObjects } from '../state/objects.ts';

export interface Work {
  /** Everything up to here is in this work or in what was taken before. */
  readonly cursor: string;
  /** False: the cursor covers rules alone, and a snapshot holds nothing else. */
  readonly complete: boolean;
  /** The whole desired state; then `entries`, `tunnels` and `remove` are empty. */
  readonly snapshot: Objects | undefined;
  readonly entries: ReadonlyMap<string, AgentEntry>;
  readonly tunnels: ReadonlyMap<string, AgentTunnel>;
  /** uuids of objects of any kind. */
  readonly remove: ReadonlySet<string>;
  /** `performance.now()` when the first of it arrived. */
  readonly arrivedAt: number;
}

export interface WorkQueue {
  /** The cursor of the last thing that arrived; undefined before the first, and while it covers rules alone. */
  readonly cursor: string | undefined;
  readonly waiting: boolean;
  snapshot(cursor: string, objects: AgentObjects, now: number): void;
  changes(cursor: string, upsert: AgentObjects, remove: readonly string[], now: number): void;
  take(): Work | undefined;
}

/** Begins behind what is known already. */
export function createWorkQueue(known?: { readonly cursor: string; readonly complete: boolean }): WorkQueue {
  let last = known?.cursor;
  let complete = known?.complete ?? true;
  let snapshot: Objects | undefined;
  let entries = new Map<string, AgentEntry>();
  let tunnels = new Map<string, AgentTunnel>();
  let remove = new Set<string>();
  let arrivedAt: number | undefined;
  return {
    get cursor() {
      return complete ? last : undefined;
    },
    get waiting() {
      return arrivedAt !== undefined;
    },
    snapshot(newCursor, objects, now) {
      last = newCursor;
      complete = objects.complete;
      snapshot = { entries: byUuid(objects.entries), tunnels: byUuid(objects.tunnels) };
      entries = new Map();
      tunnels = new Map();
      remove = new Set();
      arrivedAt ??= now;
    },
    changes(newCursor, upsert, newRemove, now) {
      last = newCursor;
      complete &&= upsert.complete;
      arrivedAt ??= now;
      for (const uuid of newRemove) {
        for (const map of snapshot ? [snapshot.entries, snapshot.tunnels] : [entries, tunnels]) map.delete(uuid);
        if (!snapshot) remove.add(uuid);
      }
      const take = <T extends { uuid: string }>(objects: readonly T[], into: Map<string, T>): void => {
        for (const object of objects) {
          remove.delete(object.uuid);
          into.set(object.uuid, object);
        }
      };
      take(upsert.entries, snapshot?.entries ?? entries);
      take(upsert.tunnels, snapshot?.tunnels ?? tunnels);
    },
    take() {
      if (arrivedAt === undefined || last === undefined) return undefined;
      const work: Work = { cursor: last, complete, snapshot, entries, tunnels, remove, arrivedAt };
      snapshot = undefined;
      entries = new Map();
      tunnels = new Map();
      remove = new Set();
      arrivedAt = undefined;
      return work;
    },
  };
}

function byUuid<T extends { uuid: string }>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((object) => [object.uuid, object]));
}
