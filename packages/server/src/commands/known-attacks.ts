/**
 * The attacks that a report may be of, and who holds what it tells of. Owns which rows are looked at and the turn that
 * reports take; decides nothing (core's attack/placement.ts does).
 */
import {
  CLOCKS_APART_MILLISECONDS,
  type KnownAttack,
  type Placement,
  placeReport,
} from '@levee/core/attack/placement.ts';
import { type AttackDetails, type AttackRow, attackColumns } from './attack-row.ts';
import type { Executor } from './executor.ts';
import type { AttackReport } from './record-attack.ts';
import { milliseconds } from './stored-row.ts';

export interface KnownAttackRow extends AttackRow {
  readonly details: AttackDetails;
  readonly start_told: boolean;
  readonly news_ms: number | null;
  readonly continues: string | null;
}

export interface Holder {
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly since_ms: number;
}

/** Of unnamed attacks, to either side of the report's time. */
const NEIGHBOURS = 8;

/** Reports of one attack take turns: two that arrive at once must not both find nothing. */
const turnStatement = {
  name: 'attack_turn',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
};

/** A user's grant before its provider's prefix. The share of the row keeps the holder until this transaction ends. */
const holderStatement = {
  name: 'attack_holder',
  text: `select s.account_uuid::text as owner_uuid, s.provider_uuid::text, ${milliseconds('s.created_at')} as since_ms
    from subnet s where s.subnet >>= $1::cidr order by s.role desc limit 1 for key share`,
};

const knownColumns = `${attackColumns}, r.details, r.start_told, ${milliseconds('r.news_at')} as news_ms,
  r.continues::text as continues`;

const namedStatement = {
  name: 'attack_named',
  text: `select ${knownColumns} from attack r where r.source = $1 and r.external_id = $2
    order by r.started_at, r.sequence for update`,
};

const partsStatement = {
  name: 'attack_parts_known',
  text: `select ${knownColumns} from attack r where r.part_of = $1 and r.end_reason is distinct from 'holder_changed'
    order by r.sequence for update`,
};

const around = (side: string) =>
  `(select uuid from attack where source = $1 and dst = $2::cidr and external_id is null and started_at ${side}
      limit ${NEIGHBOURS})`;

const unnamedStatement = {
  name: 'attack_unnamed',
  text: `select ${knownColumns} from attack r where r.uuid in (
      ${around('<= $3 order by started_at desc, sequence desc')}
      union all ${around('> $3 order by started_at, sequence')}
    ) order by r.started_at, r.sequence for update`,
};

/** Until the transaction ends, no other report of the same attacks is looked at. */
export async function takeTurn(
  executor: Executor,
  { source, externalId, dst }: Pick<AttackReport, 'source' | 'externalId' | 'dst'>,
): Promise<void> {
  await executor.rows(turnStatement, [`attack ${source} ${externalId ?? `on ${dst}`}`]);
}

/** Undefined: nobody holds all of it. */
export async function findHolder(executor: Executor, dst: string): Promise<Holder | undefined> {
  const [holder] = await executor.rows<Holder>(holderStatement, [dst]);
  return holder;
}

/** In the order of their starts. */
export function loadKnownAttacks(executor: Executor, report: AttackReport): Promise<KnownAttackRow[]> {
  const { source, externalId, dst, startedAt, endedAt, measuredAt, now } = report;
  if (externalId !== undefined) return executor.rows<KnownAttackRow>(namedStatement, [source, externalId]);
  // The clock of another replica may be ahead of this one's.
  const at = startedAt ?? endedAt ?? measuredAt ?? new Date(now.getTime() + CLOCKS_APART_MILLISECONDS);
  return executor.rows<KnownAttackRow>(unnamedStatement, [source, dst, at]);
}

/** Of one attack on a subnet, without those whose holder gave the addresses up. */
export function loadParts(executor: Executor, wholeUuid: string): Promise<KnownAttackRow[]> {
  return executor.rows<KnownAttackRow>(partsStatement, [wholeUuid]);
}

export function placeAmong(
  known: readonly KnownAttackRow[],
  report: AttackReport,
  holder: Holder | undefined,
): Placement {
  const { phase, startedAt, endedAt, measuredAt, now, externalId } = report;
  const attacks = known.map(
    (row): KnownAttack => ({
      uuid: row.uuid,
      continues: row.continues ?? undefined,
      isFormerHolders: holder !== undefined && row.owner_uuid !== holder.owner_uuid,
      startedMs: row.started_ms,
      startTold: row.start_told,
      newsMs: row.news_ms ?? undefined,
      endedMs: row.ended_ms ?? undefined,
      endReason: row.end_reason ?? undefined,
    }),
  );
  return placeReport(attacks, {
    phase,
    startedMs: startedAt?.getTime(),
    endedMs: endedAt?.getTime(),
    measuredMs: measuredAt?.getTime(),
    nowMs: now.getTime(),
    isNamed: externalId !== undefined,
    heldSinceMs: holder?.since_ms ?? 0,
  });
}
