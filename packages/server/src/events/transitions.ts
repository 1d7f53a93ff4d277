/**
 * What is to be told of an object, by what was last told of it and what it is now. Pure. The one place that says which
 * differences are events (decision 0088).
 */
import type { EventObject } from '@levee/contract/event-names.ts';

export interface ObjectNow {
  readonly uuid: string;
  readonly ownerUuid: string;
  readonly providerUuid: string;
  /** The place of its last change; the position alone tells changes of an object apart. */
  readonly change: { readonly xid: number; readonly position: number };
  readonly state: string;
  /** The state is that of something which many share, a DNS server that refuses everything: no news of any one of them. */
  readonly isShared?: boolean;
}

export interface Told {
  readonly changePosition: number;
  readonly state: string;
}

/** Nothing more is to come of a change that is in one of these, unless a router or server refuses it later. */
const settled = new Set(['active', 'disabled']);
/** Told once a change: falling back into one says something about a router, not about the object. */
const waiting = new Set(['pending', 'proposed']);

/** The second parts of the events' names, in the order in which they are told. */
export function whatToTell(kind: EventObject, told: Told | undefined, now: ObjectNow): readonly string[] {
  if (kind === 'attack') return ofAttack(told, now);
  if (told === undefined || told.changePosition !== now.change.position) return [now.state];
  return told.state === now.state || waiting.has(now.state) || now.isShared === true ? [] : [now.state];
}

function ofAttack(told: Told | undefined, { change, state }: ObjectNow): readonly string[] {
  if (told === undefined) return state === 'ended' ? ['started', 'ended'] : ['started'];
  if (told.changePosition === change.position) return [];
  return [told.state !== 'ended' && state === 'ended' ? 'ended' : 'changed'];
}

/** Whether the object has to be looked at again without a further entry in the change log. */
export function isOpen(kind: EventObject, state: string): boolean {
  return kind !== 'attack' && !settled.has(state);
}
