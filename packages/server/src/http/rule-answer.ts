/** What a firewall rule's answer has beyond every stored object's: what it counted, how to confirm it, `disabled`. */
import { isDisabled, type RuleRow } from '../commands/rule-row.ts';
import { hitsText } from './hits-text.ts';
import { type AppliedStates, type RenderedObject, renderStored } from './object-answer.ts';

export function renderRule(row: RuleRow, states: AppliedStates, extra = ''): RenderedObject {
  const derived = states.stateOf({
    uuid: row.uuid,
    change: { xid: row.change_xid, position: row.change_position },
    changedMilliseconds: row.updated_ms,
    deleted: row.deleted,
  });
  const shown = derived.state === 'active' && isDisabled(row) ? { ...derived, state: 'disabled' } : derived;
  const shared = row.shared_by !== null && row.shared_by > 1 ? `,"shared_by":${row.shared_by}` : '';
  const made = row.attack_uuid === null ? '' : `,"origin":"${row.origin}","attack_uuid":"${row.attack_uuid}"`;
  return renderStored(row, shown, hitsText(row, shared) + made + extra);
}

/** The members that tell how to confirm a change, for the end of an answer. */
export function confirmationText(changeUuid: string | undefined, confirmBy: Date | undefined): string {
  if (changeUuid === undefined || confirmBy === undefined) return '';
  return `,"change_uuid":"${changeUuid}","confirm_by":"${confirmBy.toISOString()}"`;
}
