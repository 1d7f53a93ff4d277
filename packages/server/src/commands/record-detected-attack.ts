/**
 * Takes what a detector of this installation tells of one attack: the attack, what proves it, what is done about it, in the
 * one transaction that it is given. Told again it changes nothing. Owns how a detector's words become an attack's.
 */
import type { DetectedAttack, Share, VectorProfile } from '@levee/contract/detector.ts';
import type { AttackDetails, AttackRow } from './attack-row.ts';
import type { Executor } from './executor.ts';
import { takeTurn } from './known-attacks.ts';
import { done, type Outcome } from './outcome.ts';
import { type AttackReport, recordAttack } from './record-attack.ts';

/** What its own detectors are called as the source of an attack. */
export const detectorSource = 'levee';

const MOST_TOP = 20;

const knownStatement = {
  name: 'detected_attack_known',
  text: 'select 1 from attack where source = $1 and external_id = $2 limit 1',
};

/** `now`: of this process, after it arrived. Refuses a destination that nobody holds. */
export async function recordDetectedAttack(
  executor: Executor,
  detected: DetectedAttack,
  now: Date,
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
  const timings = known.length > 0 ? {} : { timings: timingsOf(detected, now) };
  const recorded = await recordAttack(executor, { ...report, details: { ...report.details, ...timings } });
  if (!recorded.ok) return recorded;
  return done(recorded.value.row);
}

function timingsOf({ started_ms, detected_ms }: DetectedAttack, now: Date): NonNullable<AttackDetails['timings']> {
  return {
    detect_ms: Math.max(0, detected_ms - started_ms),
    decide_ms: Math.max(0, now.getTime() - detected_ms),
  };
}

function detailsOf({ packets, bytes, threshold, profile }: DetectedAttack): AttackDetails {
  const sources = weighted(profile, ({ sources }) => sources);
  const src = weighted(profile, ({ source_ports }) => source_ports);
  const dst = weighted(profile, ({ destination_ports }) => destination_ports);
  const { policy, metric, value, observed } = threshold;
  return {
    packets,
    bytes,
    threshold: { policy, metric: `${threshold.vector} ${metric}`, value, observed },
    ...(sources.length > 0 && { top_sources: sources.map(([source, share]) => ({ source, share })) }),
    ...((src.length > 0 || dst.length > 0) && {
      top_ports: {
        ...(src.length > 0 && { src: src.map(([port, share]) => ({ port, share })) }),
        ...(dst.length > 0 && { dst: dst.map(([port, share]) => ({ port, share })) }),
      },
    }),
  };
}

/** Of all the packets: each vector's shares by how much of the attack it is. The most first; `total` is of all of them. */
function weighted<T>(profile: readonly VectorProfile[], sharesOf: (each: VectorProfile) => Share<T>[]): [T, number][] {
  const parts = profile.some(({ vector }) => vector !== 'total')
    ? profile.filter(({ vector }) => vector !== 'total')
    : profile;
  const whole = parts.reduce((sum, { pps }) => sum + pps, 0);
  const shares = new Map<T, number>();
  for (const part of parts) {
    const weight = whole > 0 ? part.pps / whole : 1 / parts.length;
    for (const { value, share } of sharesOf(part)) shares.set(value, (shares.get(value) ?? 0) + share * weight);
  }
  return [...shares]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_TOP)
    .map(([value, share]) => [value, Math.min(1, Number(share.toFixed(4)))]);
}
