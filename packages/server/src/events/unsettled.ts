/**
 * The objects of which something is still to come, in the leader's memory, sorted by what it takes for them to be worth a
 * look: an acknowledgement, another condition of a router, the removal of their row. Decides no state.
 */
import type { EventObject } from '@levee/contract/event-names.ts';
import type { StoredObject } from '../agents/applied-view.ts';
import { type Cursor, compareCursors } from '../store/cursor.ts';

export interface UnsettledObject {
  readonly kind: EventObject;
  readonly uuid: string;
  readonly change: Cursor;
  readonly deleted: boolean;
  readonly scope?: Pick<StoredObject, 'needs' | 'routers'> | undefined;
  /** The state last told. */
  readonly told: string;
}

interface Placed {
  readonly object: UnsettledObject;
  /** The place of the entry that it came by, whatever became of the object since. */
  readonly since: Cursor;
}

export class Unsettled {
  /** Not acknowledged by all routers. */
  readonly #waiting = new Map<string, Placed>();
  /** Acknowledged by all, and not settled for another reason. */
  readonly #held = new Map<string, Placed>();
  /** Only some routers matter: the lowest acknowledgement of all says too little. */
  readonly #scoped = new Map<string, Placed>();
  /** Marked, and let go of by every router. */
  readonly #leaving = new Map<string, UnsettledObject>();

  get leaving(): ReadonlyMap<string, UnsettledObject> {
    return this.#leaving;
  }

  get scoped(): readonly UnsettledObject[] {
    return objectsOf(this.#scoped);
  }

  get held(): readonly UnsettledObject[] {
    return objectsOf(this.#held);
  }

  get size(): number {
    return this.#waiting.size + this.#scoped.size + this.#held.size + this.#leaving.size;
  }

  /** `low`: the lowest acknowledgement at the last look, which did not settle the object. */
  put(object: UnsettledObject, since: Cursor, low: Cursor | undefined): void {
    const { uuid } = object;
    this.drop(uuid);
    if (low !== undefined && compareCursors(since, low) <= 0) this.#held.set(uuid, { object, since });
    else if (object.scope?.routers !== undefined) this.#scoped.set(uuid, { object, since });
    else this.#waiting.set(uuid, { object, since });
  }

  drop(uuid: string): void {
    this.#waiting.delete(uuid);
    this.#scoped.delete(uuid);
    this.#held.delete(uuid);
    this.#leaving.delete(uuid);
  }

  leave(object: UnsettledObject): void {
    this.drop(object.uuid);
    this.#leaving.set(object.uuid, object);
  }

  /**
   * Those that all routers have acknowledged now, in the order of the log; they are held from here on. Looks at each that
   * waits (5 ms for 100 000), so that one which cannot settle holds up no other: to be called when `low` is another one.
   */
  acknowledged(low: Cursor): readonly UnsettledObject[] {
    const reached: Placed[] = [];
    for (const from of [this.#waiting, this.#scoped]) {
      for (const [uuid, placed] of from) {
        if (compareCursors(placed.since, low) > 0) continue;
        from.delete(uuid);
        this.#held.set(uuid, placed);
        reached.push(placed);
      }
    }
    return reached.sort((a, b) => compareCursors(a.since, b.since)).map(({ object }) => object);
  }

  /** A router is further back than the lowest was: what was held waits for it. */
  fellBack(): void {
    for (const [uuid, placed] of this.#held) {
      const { routers } = placed.object.scope ?? {};
      (routers === undefined ? this.#waiting : this.#scoped).set(uuid, placed);
    }
    this.#held.clear();
  }

  /** All whose rows may go. */
  marked(): readonly UnsettledObject[] {
    const all = [objectsOf(this.#waiting), objectsOf(this.#held), objectsOf(this.#scoped), this.#leaving.values()];
    return all.flatMap((objects) => [...objects].filter(({ deleted }) => deleted));
  }
}

function objectsOf(placed: ReadonlyMap<string, Placed>): readonly UnsettledObject[] {
  return [...placed.values()].map(({ object }) => object);
}
