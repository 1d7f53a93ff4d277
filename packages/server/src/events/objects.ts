/** Which objects have events, where their rows are, and the port through which they are read as a client would. */
import type { EventObject } from '@levee/contract/event-names.ts';
import type { StoredObject } from '../agents/applied-view.ts';
import { changingTables } from '../store/change-places.ts';
import type { ObjectNow } from './transitions.ts';

export interface RenderedObject extends ObjectNow {
  /** JSON text, as a read answers it. */
  readonly text: string;
  /** What its state depends on, where the routers are what it is derived from. */
  readonly scope?: Pick<StoredObject, 'needs' | 'routers'>;
}

/** Those that are there, in any order. Throws what the driver throws. */
export type RenderObjects = (uuids: readonly string[]) => Promise<readonly RenderedObject[]>;

/** A kind that is absent has no events. */
export type Renderers = Partial<Readonly<Record<EventObject, RenderObjects>>>;

/** Kinds are called the same in the change log. */
export const tableOf: Readonly<Record<EventObject, string>> = changingTables;

/** Their state follows from what routers acknowledged; the others' stands in columns, whose writers make entries. */
export const byRouters: ReadonlySet<EventObject> = new Set<EventObject>(['firewall_rule', 'filter', 'tunnel']);
