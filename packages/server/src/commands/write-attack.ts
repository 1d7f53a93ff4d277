/**
 * Writes rows of attacks, each with its entry in the change log where anybody is to hear of it. Owns when a row is the
 * same as before; decides neither times nor figures.
 */
import type { PlacedAttack } from '@levee/core/attack/placement.ts';
import { newUuid } from '../store/new-uuid.ts';
import { type AttackDetails, type AttackRow, attackColumns, detailNames, type Mitigation } from './attack-row.ts';
import type { Executor, Statement } from './executor.ts';
import type { KnownAttackRow } from './known-attacks.ts';

/** What a row has besides its times. */
export interface AttackFigures {
  readonly vectors: readonly string[];
  readonly peak_pps: number;
  readonly peak_bps: number;
  readonly mitigation: Mitigation;
  readonly details: AttackDetails;
}

/** Whose it is and what tells it from others. */
export type AttackNames = Pick<
  AttackRow,
  'owner_uuid' | 'provider_uuid' | 'dst' | 'source' | 'external_id' | 'part_of'
>;

/** What the last report's time may lag behind: a system that tells of its attack each second shows no other time each second. */
const NOTED_EVERY_MILLISECONDS = 60_000;

const createStatement = {
  name: 'attack_create',
  text: `with drawn as (select nextval('change_position') as position, date_trunc('milliseconds', now()) as moment),
    created as (
      insert into attack (uuid, sequence, owner_uuid, provider_uuid, dst, source, external_id, continues, started_at,
        start_told, news_at, ended_at, end_reason, vectors, peak_pps, peak_bps, mitigation, details, last_reported_at,
        created_at, updated_at, change_position, part_of)
      select $1, position, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, moment, moment, moment,
        position, $18 from drawn
      returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from created
    )
    select ${attackColumns} from created r`,
};

const changeStatement = {
  name: 'attack_change',
  text: `with changed as (
      update attack set started_at = $2, start_told = $3, news_at = $4, ended_at = $5, end_reason = $6, vectors = $7,
        peak_pps = $8, peak_bps = $9, mitigation = $10, details = $11,
        last_reported_at = case when $12 then date_trunc('milliseconds', now()) else last_reported_at end,
        updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'attack', uuid from changed
    )
    select ${attackColumns} from changed r`,
};

/** Nobody is to hear of it: no entry in the change log. */
const noteStatement = {
  name: 'attack_note',
  text: `update attack r set start_told = $2, news_at = $3,
      last_reported_at = case when $4 then date_trunc('milliseconds', now()) else r.last_reported_at end
    where uuid = $1 returning ${attackColumns}`,
};

export function createAttack(
  executor: Executor,
  { owner_uuid, provider_uuid, dst, source, external_id, part_of }: AttackNames,
  placed: PlacedAttack,
  figures: AttackFigures,
): Promise<AttackRow> {
  const names = [newUuid(), owner_uuid, provider_uuid, dst, source, external_id, placed.continues ?? null];
  return write(executor, createStatement, [...names, ...timesOf(placed), ...valuesOf(figures), part_of]);
}

/** `isReported`: it is what its source told of. Undefined: nothing that anybody sees is another. */
export async function changeAttack(
  executor: Executor,
  row: KnownAttackRow,
  placed: PlacedAttack,
  figures: AttackFigures,
  isReported: boolean,
): Promise<AttackRow | undefined> {
  const same =
    row.started_ms === placed.startedMs &&
    row.ended_ms === (placed.endedMs ?? null) &&
    row.end_reason === (placed.endReason ?? null) &&
    JSON.stringify(valuesOf(figures)) === JSON.stringify(valuesOf(row));
  if (same) return undefined;
  return write(executor, changeStatement, [row.uuid, ...timesOf(placed), ...valuesOf(figures), isReported]);
}

/** A report that changes nothing: that it came, and until when the attack was going on. */
export async function noteReport(
  executor: Executor,
  row: KnownAttackRow,
  { startTold, newsMs }: PlacedAttack,
  now: Date,
): Promise<AttackRow> {
  const isDue = now.getTime() - row.last_reported_ms > NOTED_EVERY_MILLISECONDS;
  if (!isDue && row.news_ms === (newsMs ?? null) && row.start_told === startTold) return row;
  return write(executor, noteStatement, [row.uuid, startTold, dateOf(newsMs), isDue]);
}

async function write(executor: Executor, statement: Statement, values: readonly unknown[]): Promise<AttackRow> {
  const [row] = await executor.rows<AttackRow>(statement, values);
  if (row === undefined) throw new Error('an attack that was written is not there');
  return row;
}

/** In the order of the columns. */
function timesOf({ startedMs, startTold, newsMs, endedMs, endReason }: PlacedAttack): readonly unknown[] {
  return [new Date(startedMs), startTold, dateOf(newsMs), dateOf(endedMs), endReason ?? null];
}

/** In the order of the columns. Equal details have equal texts as far as what was told is spelt alike. */
function valuesOf({ vectors, peak_pps, peak_bps, mitigation, details }: AttackFigures): readonly unknown[] {
  const known = detailNames.filter((name) => details[name] !== undefined).map((name) => [name, details[name]]);
  return [vectors, peak_pps, peak_bps, mitigation, JSON.stringify(Object.fromEntries(known))];
}

function dateOf(milliseconds: number | undefined): Date | null {
  return milliseconds === undefined ? null : new Date(milliseconds);
}
