/** Which rows and columns attacks are listed from, and one attack with all that is kept of it. */
import type pg from 'pg';
import { type EvidenceColumns, evidenceColumns, headerText } from './attack-evidence-row.ts';
import { type AttackDetails, type AttackRow, attackColumns } from './attack-row.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';

const source: ListSource = { name: 'attacks', table: 'attack', columns: attackColumns };

export function attackChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly AttackRow[]> {
  return chunksOf<AttackRow>(pool, source, scope);
}

export interface WholeAttack extends AttackRow, EvidenceColumns {
  readonly details: AttackDetails;
  /** Oldest first. */
  readonly samples: readonly { readonly at_ms: number; readonly pps: number | null; readonly bps: number | null }[];
  readonly flowrules: readonly string[];
}

/** $1 attack, $2 account; null: the operator's, who reads everyone's. */
const readable = 'r.uuid = $1 and ($2::uuid is null or r.owner_uuid = $2 or r.provider_uuid = $2)';
const readerOf = ({ role, accountUuid }: Caller) => (role === 'operator' ? null : accountUuid);

/** One statement: what is read is of one moment. */
const readStatement = {
  name: 'attack_read',
  text: `select ${attackColumns}, r.details,
      coalesce((select json_agg(json_build_object('at_ms', round(date_part('epoch', s.at) * 1000), 'pps', s.pps, 'bps', s.bps)
        order by s.at) from attack_sample s where s.attack_uuid = r.uuid), '[]') as samples,
      array(select f.uuid::text from flowrule f where f.attack_uuid = r.uuid order by f.sequence) as flowrules,
      ${evidenceColumns}
    from attack r where ${readable}`,
};

/** Undefined: there is none for this caller. `uuid` is well-formed. */
export async function readAttack(executor: Executor, caller: Caller, uuid: string): Promise<WholeAttack | undefined> {
  const [attack] = await executor.rows<WholeAttack>(readStatement, [uuid, readerOf(caller)]);
  return attack;
}

export interface SampledRow {
  readonly at_ms: number;
  readonly length: number;
  /** Base64. */
  readonly header: string;
}

const packetsStatement = {
  name: 'attack_packets',
  text: `select coalesce((select json_agg(json_build_object('at_ms', round(date_part('epoch', p.at) * 1000), 'length', p.length,
      'header', ${headerText}) order by p.at, p.mark) from attack_packet p where p.attack_uuid = r.uuid), '[]') as packets
    from attack r where ${readable}`,
};

/** All that are kept of it, oldest first. Undefined: there is no such attack for this caller. `uuid` is well-formed. */
export async function readAttackPackets(
  executor: Executor,
  caller: Caller,
  uuid: string,
): Promise<readonly SampledRow[] | undefined> {
  const [row] = await executor.rows<{ packets: SampledRow[] }>(packetsStatement, [uuid, readerOf(caller)]);
  return row?.packets;
}
