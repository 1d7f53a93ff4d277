/**
 * Renders stored objects of any kind as JSON text. The stored fields are JSON already and are spliced in as they are:
 * parsing and writing them again is most of the cost of a long list. State and places come from what the routers reported.
 */
import type { AppliedEntry } from '@levee/contract/schemas/object.ts';
import type { StoredRow } from '../commands/stored-row.ts';
import type { Cursor } from '../store/cursor.ts';

/** What is asked about an object's change; `agents/applied-view.ts` says what each member means. */
export interface StatedObject {
  readonly uuid: string;
  readonly change: Cursor;
  readonly changedMilliseconds: number;
  readonly deleted: boolean;
  readonly needs?: { readonly capability: string; readonly words: string } | undefined;
  readonly routers?: ReadonlySet<string> | undefined;
}

export interface ObjectState {
  readonly state: 'pending' | 'active' | 'failed';
  readonly reason?: string | undefined;
  readonly applied: readonly AppliedEntry[];
}

/** What is known about a change on the routers; `agents/applied-view.ts` is the real one. */
export interface AppliedStates {
  stateOf(object: StatedObject): ObjectState;
}

export interface RenderedObject {
  readonly state: string;
  readonly text: string;
}

export const timeText = (milliseconds: number) => new Date(milliseconds).toISOString();

/** `more`: further members as text, each with a comma before it. */
export function renderStored(
  row: StoredRow,
  derived: { readonly state: string; readonly reason?: string | undefined; readonly applied: readonly object[] },
  more = '',
): RenderedObject {
  const state = row.deleted ? 'marked_for_deletion' : derived.state;
  let text = `{"uuid":"${row.uuid}","owner_uuid":"${row.owner_uuid}","state":"${state}"`;
  // A deleted object that no router holds waits for nothing.
  const reason = row.deleted && derived.applied.length === 0 ? undefined : derived.reason;
  if (reason !== undefined) text += `,"state_reason":${JSON.stringify(reason)}`;
  text += `,${row.fields.slice(1, -1)}`;
  if (row.expires_ms !== null) text += `,"expires_at":"${timeText(row.expires_ms)}"`;
  text += `,"applied":${appliedText(derived.applied)}`;
  text += `,"created_at":"${timeText(row.created_ms)}","updated_at":"${timeText(row.updated_ms)}"${more}}`;
  return { state, text };
}

/** Long lists repeat the very same array for many rules. */
let lastApplied: readonly object[] | undefined;
let lastText = '[]';

function appliedText(applied: readonly object[]): string {
  if (applied.length === 0) return '[]';
  if (applied !== lastApplied) {
    lastApplied = applied;
    lastText = JSON.stringify(applied);
  }
  return lastText;
}
