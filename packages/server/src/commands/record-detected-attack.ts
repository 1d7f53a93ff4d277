/**
 * Takes what a detector of this installation tells of one attack: the attack, what proves it, what is done about it, in the
 * one transaction that it is given. Told again it changes nothing. Owns how a detector's words become an attack's, and that
 * neither what proves it nor what is done about it can cost the word itself.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { evidenceWithin, type HeldTime } from '@levee/core/attack/own-part.ts';
import { countBeyond, noteDecision, noteDetection, saveEvidence } from './attack-evidence.ts';
import { endParts, saveParts } from './attack-parts.ts';
import type { AttackDetails, AttackRow } from './attack-row.ts';
import type { Executor } from './executor.ts';
import { type Holder, takeTurn } from './known-attacks.ts';
import { defaultMitigation, type MitigationSettings, mitigateAttack } from './mitigate-attack.ts';
import { done, type Outcome } from './outcome.ts';
import { type AttackReport, recordAttack } from './record-attack.ts';
import { undoneAlone } from './undone-alone.ts';
import { noteUndecided } from './write-measures.ts';

/** What its own detectors are called as the source of an attack. */
export const detectorSource = 'levee';

const knownStatement = {
  name: 'detected_attack_known',
  text: 'select 1 from attack where source = $1 and external_id = $2 limit 1',
};

/** `now`: of this process, after it arrived. Refuses a destination that nobody holds. */
export async function recordDetectedAttack(
  executor: Executor,
  detected: DetectedAttack,
  now: Date,
  mitigation: MitigationSettings = defaultMitigation,
): Promise<Outcome<AttackRow>> {
  // A detector's clock may be ahead: no time may lie after ours.
  const past = (milliseconds: number) => new Date(Math.min(milliseconds, now.getTime()));
  const endedMs = detected.ended_ms ?? detected.measured.at_ms;
  const report: AttackReport = {
    source: detectorSource,
    externalId: detected.id,
    dst: detected.dst,
    phase: detected.phase,
    startedAt: past(detected.started_ms),
    endedAt: detected.phase === 'ended' ? past(Math.max(detected.started_ms, endedMs)) : undefined,
    measuredAt: past(detected.measured.at_ms),
    now,
    vectors: detected.vectors,
    pps: Math.round(detected.measured.pps),
    bps: Math.round(detected.measured.bps),
    details: detailsOf(detected),
  };
  await takeTurn(executor, report);
  const known = await executor.rows(knownStatement, [detectorSource, detected.id]);
  // How long it took is told once: a repeated report takes no longer.
  const timings = known.length > 0 ? {} : { timings: timingsOf(detected) };
  const recorded = await recordAttack(executor, { ...report, details: { ...report.details, ...timings } });
  if (!recorded.ok) return recorded;
  const { row, holder, changes } = recorded.value;
  const counted = await countBeyond(executor, detectorSource, detected);
  const unsaved = await undoneAlone(executor, async () => {
    await saveEvidence(executor, row.uuid, evidenceWithin(detected, timeOf(row, holder)), counted);
    await noteDetection(executor, row.uuid, detected);
  });
  if (unsaved !== undefined) mitigation.logError?.(unsaved, `what proves attack ${row.uuid} is not stored`);
  const undecided = await undoneAlone(executor, () => mitigateAttack(executor, row, detected, now, mitigation));
  if (undecided !== undefined) {
    mitigation.logError?.(undecided, `measures against attack ${row.uuid} cannot be decided`);
    await noteUndecided(executor, row.uuid);
  }
  const isNew = changes.some((change) => change.before === undefined && change.row.uuid === row.uuid);
  const unshared = await undoneAlone(executor, async () => {
    await saveParts(executor, { row, isNew, counted }, detected, now);
    for (const other of changes) if (other.row.uuid !== row.uuid) await endParts(executor, other.row);
  });
  if (unshared !== undefined) mitigation.logError?.(unshared, `shares of attack ${row.uuid} are not stored`);
  await noteDecision(executor, row.uuid);
  return done(row);
}

/** Nothing of a former holder's is kept with the present one's, nor of this one's with the former's. */
function timeOf({ owner_uuid }: AttackRow, holder: Holder | undefined): HeldTime {
  const sinceMs = holder?.since_ms ?? 0;
  if (holder === undefined || holder.owner_uuid === owner_uuid) return { sinceMs, untilMs: Number.POSITIVE_INFINITY };
  return { sinceMs: 0, untilMs: sinceMs };
}

function timingsOf({ started_ms, detected_ms }: DetectedAttack): NonNullable<AttackDetails['timings']> {
  return { detect_ms: Math.max(0, detected_ms - started_ms) };
}

/** What grows with each report is evidence: an attack is another by what it is, not by each packet more. */
function detailsOf({ threshold }: DetectedAttack): AttackDetails {
  const { policy, metric, value, observed } = threshold;
  return { threshold: { policy, metric: `${threshold.vector} ${metric}`, value, observed } };
}
