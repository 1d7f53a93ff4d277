/**
 * Renders flowrules as JSON text. A flowrule's state is derived: from what the BGP speaker's reconciler wrote of it, and
 * from whether there is a speaker at all.
 */
import type { FlowruleRow } from '../commands/flowrule-row.ts';
import { type RenderedObject, renderStored, timeText } from './object-answer.ts';

export type FlowruleState = 'proposed' | 'pending' | 'active' | 'failed';

/** `hasSpeaker`: a BGP speaker is configured. */
export function flowruleStateOf(
  row: Pick<FlowruleRow, 'held' | 'failure' | 'applied_position' | 'applied_ms' | 'change_position' | 'speaker'>,
  hasSpeaker: boolean,
): { readonly state: FlowruleState; readonly reason?: string } {
  if (row.held !== null) return { state: 'proposed', reason: row.held };
  if (!hasSpeaker) {
    return { state: 'proposed', reason: 'No BGP speaker is configured: the rule is shown and announced nowhere.' };
  }
  if (row.failure !== null) return { state: 'failed', reason: row.failure };
  const { speaker } = row;
  // What it has while it cannot be asked, nobody knows; all of it is announced anew when it is back.
  if (speaker?.trouble != null) {
    const since = timeText(speaker.since_ms);
    return { state: 'pending', reason: `${speaker.name} has been away since ${since}: ${speaker.trouble}` };
  }
  if (row.applied_position === row.change_position && row.applied_ms !== null) return { state: 'active' };
  return { state: 'pending', reason: 'The BGP speaker does not have it yet.' };
}

export function renderFlowrule(row: FlowruleRow, hasSpeaker: boolean): RenderedObject {
  const derived = flowruleStateOf(row, hasSpeaker);
  let more = `,"origin":"${row.origin}"`;
  if (row.attack_uuid !== null) more += `,"attack_uuid":"${row.attack_uuid}"`;
  if (derived.state === 'active' && !row.deleted && row.applied_ms !== null) {
    more += `,"announced_at":"${timeText(row.applied_ms)}"`;
    const routers = row.speaker?.peers?.filter(({ established }) => established).map(({ address }) => address);
    if (routers !== undefined) more += `,"routers":${JSON.stringify(routers)}`;
  }
  return renderStored(row, { ...derived, applied: [] }, more);
}
