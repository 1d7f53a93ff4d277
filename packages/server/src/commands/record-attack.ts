/**
 * Records what is told of an attack, by the detector or by another system. Start, changes and end are one row, in
 * whatever order they arrive; what is told again changes nothing. An attack that has ended stays so: a late report adds
 * to what is known of it. Owns who an attack belongs to; mitigates nothing.
 */
import { newUuid } from '../store/new-uuid.ts';
import { type AttackDetails, type AttackRow, attackColumns, detailNames, type Mitigation } from './attack-row.ts';
import { addSample } from './attack-samples.ts';
import type { Executor } from './executor.ts';
import { done, type Failure, type Outcome, refuse } from './outcome.ts';

export interface AttackReport {
  /** Who tells; `levee` is the detector here. */
  readonly source: string;
  /** Tells the source's attacks apart. Undefined: the report is of its latest attack on `dst`. */
  readonly externalId: string | undefined;
  /** Canonical: an address, or a subnet whose addresses are attacked together. */
  readonly dst: string;
  readonly phase: 'started' | 'changed' | 'ended';
  readonly startedAt?: Date | undefined;
  readonly endedAt?: Date | undefined;
  /** When `pps` and `bps` were measured. */
  readonly measuredAt?: Date | undefined;
  /** For what is not told; no other time lies after it. */
  readonly now: Date;
  readonly vectors?: readonly string[] | undefined;
  /** Packets and bits a second at that moment. */
  readonly pps?: number | undefined;
  readonly bps?: number | undefined;
  readonly mitigation?: Mitigation | undefined;
  /** Each member that is given replaces the one that is known. */
  readonly details: AttackDetails;
}

export interface RecordedAttack {
  readonly row: AttackRow;
  /** Undefined: it is new. The same row: nothing was news. */
  readonly before: AttackRow | undefined;
}

type KnownAttack = AttackRow & { readonly details: AttackDetails; readonly same_dst: boolean };

/** How long after an end an undated report of an end is taken for the same one: notifications are sent again. */
const SAME_END_MILLISECONDS = 60_000;

/** Reports of one attack take turns: two that arrive at once must not both find nothing. */
const turnStatement = {
  name: 'attack_turn',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
};

const namedStatement = {
  name: 'attack_named',
  text: `select ${attackColumns}, r.details, r.dst = $3::cidr as same_dst
    from attack r where r.source = $1 and r.external_id = $2 for update`,
};

const latestStatement = {
  name: 'attack_latest',
  text: `select ${attackColumns}, r.details, true as same_dst from attack r
    where r.source = $1 and r.dst = $2::cidr and r.external_id is null order by r.sequence desc limit 1 for update`,
};

/** A user's grant before its provider's prefix. The share of the row keeps the holder until this transaction ends. */
const holderStatement = {
  name: 'attack_holder',
  text: `select s.account_uuid::text, s.provider_uuid::text from subnet s where s.subnet >>= $1::cidr
    order by s.role desc limit 1 for key share`,
};

const createStatement = {
  name: 'attack_create',
  text: `with drawn as (select nextval('change_position') as position), created as (
      insert into attack (uuid, sequence, owner_uuid, provider_uuid, dst, source, external_id, vectors, started_at, ended_at,
        peak_pps, peak_bps, mitigation, details, created_at, updated_at, change_position)
      select $1, position, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), position from drawn
      returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from created
    )
    select ${attackColumns} from created r`,
};

const changeStatement = {
  name: 'attack_change',
  text: `with changed as (
      update attack set vectors = $2, started_at = $3, ended_at = $4, peak_pps = $5, peak_bps = $6, mitigation = $7,
        details = $8, updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from changed
    )
    select ${attackColumns} from changed r`,
};

/** In a transaction. Refuses a destination that nobody holds, and an id that is of an attack on another one. */
export async function recordAttack(executor: Executor, report: AttackReport): Promise<Outcome<RecordedAttack>> {
  if (!executor.inTransaction) throw new Error('an attack is recorded outside a transaction');
  await executor.rows(turnStatement, [`attack ${report.source} ${report.externalId ?? `on ${report.dst}`}`]);
  const found = await findAttack(executor, report);
  if (found?.same_dst === false) return refuse('conflict', otherDestination(report, found.dst));
  const recorded =
    found === undefined ? await createAttack(executor, report) : await changeAttack(executor, report, found);
  if (!recorded.ok) return recorded;
  const { pps, bps, measuredAt, phase } = report;
  // What an undated report of an end repeats was measured before.
  const dated = measuredAt ?? (phase === 'ended' ? report.endedAt : phase === 'started' ? report.startedAt : undefined);
  if ((pps !== undefined || bps !== undefined) && (dated !== undefined || phase !== 'ended')) {
    const { uuid } = recorded.value.row;
    await addSample(executor, uuid, { at: dated ?? report.now, pps, bps }, dated !== undefined);
  }
  return recorded;
}

async function findAttack(executor: Executor, report: AttackReport): Promise<KnownAttack | undefined> {
  if (report.externalId !== undefined) {
    const [named] = await executor.rows<KnownAttack>(namedStatement, [report.source, report.externalId, report.dst]);
    return named;
  }
  const [latest] = await executor.rows<KnownAttack>(latestStatement, [report.source, report.dst]);
  return latest !== undefined && isOf(latest, report) ? latest : undefined;
}

/** Whether a report without an id is of this attack, the latest one, rather than of a new one. */
function isOf({ ended_ms }: AttackRow, { phase, startedAt, endedAt, now }: AttackReport): boolean {
  if (ended_ms === null) return true;
  if (startedAt !== undefined) return startedAt.getTime() <= ended_ms;
  if (phase !== 'ended') return false;
  return endedAt === undefined ? now.getTime() - ended_ms <= SAME_END_MILLISECONDS : endedAt.getTime() <= ended_ms;
}

async function createAttack(executor: Executor, report: AttackReport): Promise<Outcome<RecordedAttack>> {
  const [holder] = await executor.rows<{ account_uuid: string; provider_uuid: string }>(holderStatement, [report.dst]);
  if (holder === undefined) return nobodyHolds(report.dst);
  const started = report.startedAt ?? report.endedAt ?? report.now;
  const [row] = await executor.rows<AttackRow>(createStatement, [
    newUuid(),
    holder.account_uuid,
    holder.provider_uuid,
    report.dst,
    report.source,
    report.externalId ?? null,
    [...new Set(report.vectors)],
    started,
    report.phase === 'ended' ? later(report.endedAt ?? report.now, started) : null,
    report.pps ?? 0,
    report.bps ?? 0,
    report.mitigation ?? 'observe',
    detailsText(report.details),
  ]);
  if (row === undefined) throw new Error('an insert without a row');
  return done({ row, before: undefined });
}

async function changeAttack(
  executor: Executor,
  report: AttackReport,
  before: KnownAttack,
): Promise<Outcome<RecordedAttack>> {
  const vectors = [...new Set([...before.vectors, ...(report.vectors ?? [])])];
  const startedMs = Math.min(before.started_ms, report.startedAt?.getTime() ?? before.started_ms);
  const endedMs =
    before.ended_ms ??
    (report.phase === 'ended' ? Math.max((report.endedAt ?? report.now).getTime(), startedMs) : null);
  const peakPps = Math.max(before.peak_pps, report.pps ?? 0);
  const peakBps = Math.max(before.peak_bps, report.bps ?? 0);
  const mitigation = report.mitigation ?? before.mitigation;
  const details = detailsText({ ...before.details, ...report.details });
  const same =
    vectors.length === before.vectors.length &&
    startedMs === before.started_ms &&
    endedMs === before.ended_ms &&
    peakPps === before.peak_pps &&
    peakBps === before.peak_bps &&
    mitigation === before.mitigation &&
    details === detailsText(before.details);
  if (same) return done({ row: before, before });
  const [row] = await executor.rows<AttackRow>(changeStatement, [
    before.uuid,
    vectors,
    new Date(startedMs),
    endedMs === null ? null : new Date(endedMs),
    peakPps,
    peakBps,
    mitigation,
    details,
  ]);
  if (row === undefined) throw new Error('a locked row is gone');
  return done({ row, before });
}

/** Equal details have equal texts as far as what was told is spelt alike. */
function detailsText(details: AttackDetails): string {
  const known = detailNames.filter((name) => details[name] !== undefined).map((name) => [name, details[name]]);
  return JSON.stringify(Object.fromEntries(known));
}

function later(a: Date, b: Date): Date {
  return a < b ? b : a;
}

function nobodyHolds(dst: string): { readonly ok: false; readonly failure: Failure } {
  return refuse('validation_failed', {
    field: '/dst',
    code: 'not_protected',
    message: `dst: no provider of this installation holds ${dst}; it must lie inside one provider's prefix`,
  });
}

function otherDestination({ source, externalId, dst }: AttackReport, known: string) {
  return {
    field: '/external_id',
    code: 'other_destination',
    message: `external_id: ${source} told of ${externalId} as an attack on ${known}, not on ${dst}; another attack needs another one`,
  };
}
