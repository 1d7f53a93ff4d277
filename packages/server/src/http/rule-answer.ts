/**
 * Renders firewall rules as JSON text. The stored fields are JSON already and are spliced in as they are: parsing and
 * writing them again is most of the cost of a long list. State and places come from what the routers reported.
 */
import type { AppliedEntry } from '@levee/contract/schemas/object.ts';
import { isDisabled, type RuleRow } from '../commands/rule-row.ts';
import type { Cursor } from '../store/cursor.ts';

/** What is known about a change on the routers; `agents/applied-view.ts` is the real one. */
export interface AppliedStates {
  stateOf(object: {
    readonly uuid: string;
    readonly change: Cursor;
    readonly changedMilliseconds: number;
    readonly deleted: boolean;
  }): {
    readonly state: 'pending' | 'active' | 'failed';
    readonly reason?: string | undefined;
    readonly applied: readonly AppliedEntry[];
  };
}

export interface RenderedRule {
  readonly state: string;
  readonly text: string;
}

const time = (milliseconds: number) => new Date(milliseconds).toISOString();

export function renderRule(row: RuleRow, states: AppliedStates, extra = ''): RenderedRule {
  const derived = states.stateOf({
    uuid: row.uuid,
    change: { xid: row.change_xid, position: row.change_position },
    changedMilliseconds: row.updated_ms,
    deleted: row.deleted,
  });
  const state = row.deleted
    ? 'marked_for_deletion'
    : derived.state === 'active' && isDisabled(row)
      ? 'disabled'
      : derived.state;
  let text = `{"uuid":"${row.uuid}","owner_uuid":"${row.owner_uuid}","state":"${state}"`;
  // A deleted rule that no router holds waits for nothing.
  const reason = row.deleted && derived.applied.length === 0 ? undefined : derived.reason;
  if (reason !== undefined) text += `,"state_reason":${JSON.stringify(reason)}`;
  // Never empty: dst, protocol and action are always there.
  text += `,${row.fields.slice(1, -1)}`;
  if (row.expires_ms !== null) text += `,"expires_at":"${time(row.expires_ms)}"`;
  text += `,"hits":{"packets":${row.packets ?? 0},"bytes":${row.bytes ?? 0}`;
  if (row.last_hit_ms !== null) text += `,"last_hit_at":"${time(row.last_hit_ms)}"`;
  if (row.shared_by !== null && row.shared_by > 1) text += `,"shared_by":${row.shared_by}`;
  text += `},"applied":${appliedText(derived.applied)}`;
  text += `,"created_at":"${time(row.created_ms)}","updated_at":"${time(row.updated_ms)}"${extra}}`;
  return { state, text };
}

/** Long lists repeat the very same array for many rules. */
let lastApplied: readonly AppliedEntry[] | undefined;
let lastText = '[]';

function appliedText(applied: readonly AppliedEntry[]): string {
  if (applied.length === 0) return '[]';
  if (applied !== lastApplied) {
    lastApplied = applied;
    lastText = JSON.stringify(applied);
  }
  return lastText;
}

/** The members that tell how to confirm a change, for the end of an answer. */
export function confirmationText(changeUuid: string | undefined, confirmBy: Date | undefined): string {
  if (changeUuid === undefined || confirmBy === undefined) return '';
  return `,"change_uuid":"${changeUuid}","confirm_by":"${confirmBy.toISOString()}"`;
}
