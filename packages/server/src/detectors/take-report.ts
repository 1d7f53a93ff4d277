/**
 * Stores what a detector reports: each attack in a transaction of its own, so that one that cannot be recorded stops no
 * other, be it by a mistake of ours; then its figures and what is usual. Answers when everything is committed.
 */
import type { DetectedAttack, DetectorReportAnswer, ExporterStatus } from '@levee/contract/detector.ts';
import type pg from 'pg';
import { transact } from '../commands/executor.ts';
import { defaultMitigation, type MitigationSettings } from '../commands/mitigate-attack.ts';
import { recordDetectedAttack } from '../commands/record-detected-attack.ts';
import { saveBaselines } from '../store/detector-settings.ts';
import { isRetryable, isUnanswered, isUnavailable } from '../store/failure.ts';
import type { ReadReport } from './parse-report.ts';

export interface TakenReport {
  readonly answer: DetectorReportAnswer;
  /** Attacks were told of: the change log may have something new. */
  readonly wrote: boolean;
}

/** Attacks that are recorded at once: most of their time is the way to the database and back. */
const LANES = 4;

/** Throws when the database is away or another transaction wins again and again: all of it is told again. */
export async function takeReport(
  pool: pg.Pool,
  detectorUuid: string,
  { report, faults }: ReadReport,
  now: Date,
  mitigation: MitigationSettings = defaultMitigation,
): Promise<TakenReport> {
  const refused = [...faults.refused];
  const record = async (attack: DetectedAttack): Promise<void> => {
    try {
      const outcome = await transact(pool, (executor) => recordDetectedAttack(executor, attack, now, mitigation));
      if (outcome.ok) return;
      const { code, details } = outcome.failure;
      refused.push({ id: attack.id, message: details.map(({ message }) => message).join(' ') || code });
    } catch (error) {
      if (isUnavailable(error) || isRetryable(error) || isUnanswered(error)) throw error;
      mitigation.logError?.(error, `an attack on ${attack.dst} that a detector told of cannot be recorded`);
      refused.push({ id: attack.id, message: 'The service failed on this attack; its log tells why.' });
    }
  };
  // What is told of one attack stays in its order.
  const told = [...Map.groupBy(report.attacks, ({ id }) => id).values()];
  const lane = async (): Promise<void> => {
    for (let next = told.shift(); next !== undefined; next = told.shift()) {
      for (const attack of next) await record(attack);
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(LANES, told.length) }, lane));
  for (const each of lanes) if (each.status === 'rejected') throw each.reason;
  if (report.baselines !== undefined) await saveBaselines(pool, report.baselines);
  if (report.exporters !== undefined) await saveFigures(pool, detectorUuid, report, report.exporters);
  return { answer: { ...faults, refused }, wrote: report.attacks.length > 0 };
}

/**
 * One statement, every ten seconds of each detector: these are live figures, of which the last ones count. Several detectors pass on what
 * one collector tells, and take its rows over from each other: all that it touches is locked first, in one order, so that none waits for
 * another in a circle.
 */
const FIGURES = `with locked as materialized (
    select 1 from exporter_figures
    where detector_uuid = $1 or (collector, source) in (select * from unnest($6::text[], $4::inet[]))
    order by collector, source for update
  ), seen as (
    update detector set last_seen_at = now(), run = $2, status = coalesce($3, status),
      seen_since = case when last_seen_at > now() - interval '1 minute' then coalesce(seen_since, now()) else now() end
    where uuid = $1 and (select count(*) from locked) >= 0 returning uuid
  ), gone as (
    delete from exporter_figures where detector_uuid = $1 and (select count(*) from locked) >= 0
      and (collector, source) not in (select * from unnest($6::text[], $4::inet[]))
  )
  insert into exporter_figures (collector, detector_uuid, source, told_at, figures)
  select distinct on (f.collector, f.source) f.collector, seen.uuid, f.source, now(), f.figures
  from seen cross join unnest($4::inet[], $5::json[], $6::text[]) as f (source, figures, collector)
  order by f.collector, f.source
  on conflict (collector, source) do update
    set detector_uuid = excluded.detector_uuid, told_at = excluded.told_at, figures = excluded.figures`;

async function saveFigures(
  pool: pg.Pool,
  detectorUuid: string,
  { run, status }: ReadReport['report'],
  exporters: readonly ExporterStatus[],
): Promise<void> {
  await pool.query({
    name: 'detector_figures',
    text: FIGURES,
    values: [
      detectorUuid,
      run,
      status === undefined ? null : JSON.stringify(status),
      exporters.map(({ source }) => source),
      exporters.map((each) => JSON.stringify(each)),
      exporters.map(({ collector }) => collector ?? detectorUuid),
    ],
  });
}
