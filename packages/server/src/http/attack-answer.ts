/** Renders attacks as JSON text: as lists show them, and one with all that is known of it. */
import { type AttackRow, detailNames } from '../commands/attack-row.ts';
import type { WholeAttack } from '../commands/read-attacks.ts';
import { evidenceJson, type MeasureStates } from './attack-evidence-answer.ts';
import { type RenderedObject, timeText } from './object-answer.ts';

export function attackJson(row: AttackRow): Readonly<Record<string, unknown>> {
  return {
    uuid: row.uuid,
    owner_uuid: row.owner_uuid,
    dst: row.dst,
    state: row.ended_ms === null ? 'ongoing' : 'ended',
    source: row.source,
    ...(row.external_id !== null && { external_id: row.external_id }),
    ...(row.part_of !== null && { part_of: row.part_of }),
    vectors: row.vectors,
    started_at: timeText(row.started_ms),
    ...(row.ended_ms !== null && { ended_at: timeText(row.ended_ms), end_reason: row.end_reason }),
    last_reported_at: timeText(row.last_reported_ms),
    peak_pps: row.peak_pps,
    peak_bps: row.peak_bps,
    mitigation: row.mitigation,
    ...(row.timings !== null && { timings: row.timings }),
    created_at: timeText(row.created_ms),
    updated_at: timeText(row.updated_ms),
  };
}

export function renderAttack(row: AttackRow): RenderedObject {
  return { state: row.ended_ms === null ? 'ongoing' : 'ended', text: JSON.stringify(attackJson(row)) };
}

export function renderWholeAttack(attack: WholeAttack, states: MeasureStates): string {
  const { details } = attack;
  // The timings are among the attack's own members.
  const known = detailNames
    .filter((name) => details[name] !== undefined && name !== 'timings')
    .map((name) => [name, details[name]]);
  return JSON.stringify({
    ...attackJson(attack),
    ...Object.fromEntries(known),
    samples: attack.samples.map(({ at_ms, pps, bps }) => ({
      at: timeText(at_ms),
      ...(pps !== null && { pps }),
      ...(bps !== null && { bps }),
    })),
    flowrules: attack.flowrules,
    ...evidenceJson(attack, states),
  });
}
