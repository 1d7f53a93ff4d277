/**
 * Renders flowrules as JSON text. A flowrule's state is derived: from what the BGP speaker's reconciler wrote of it, and
 * from whether there is a speaker at all.
 */
import type { FlowruleRow } from '../commands/flowrule-row.ts';
import { type RenderedObject, renderStored, timeText } from './object-answer.ts';

export type FlowruleState = 'proposed' | 'pending' | 'active' | 'failed';

/** `hasSpeaker`: a BGP speaker is configured. */
export function flowruleStateOf(
  row: Pick<FlowruleRow, 'held' | 'failure' | 'applied_position' | 'change_position'>,
  hasSpeaker: boolean,
): { readonly state: FlowruleState; readonly reason?: string } {
  if (row.held !== null) return { state: 'proposed', reason: row.held };
  if (!hasSpeaker) {
    return { state: 'proposed', reason: 'No BGP speaker is configured: the rule is shown and announced nowhere.' };
  }
  if (row.failure !== null) return { state: 'failed', reason: row.failure };
  if (row.applied_position === row.change_position) return { state: 'active' };
  return { state: 'pending', reason: 'The BGP speaker does not have it yet.' };
}

export function renderFlowrule(row: FlowruleRow, hasSpeaker: boolean): RenderedObject {
  const derived = flowruleStateOf(row, hasSpeaker);
  let more = `,"origin":"${row.origin}"`;
  if (row.attack_uuid !== null) more += `,"attack_uuid":"${row.attack_uuid}"`;
  if (derived.state === 'active' && !row.deleted && row.applied_ms !== null) {
    more += `,"announced_at":"${timeText(row.applied_ms)}"`;
  }
  return renderStored(row, { ...derived, applied: [] }, more);
}
