/** The flowrule as rows give it to http and commands. Owns the columns that are selected and lists read; renders nothing. */
import type pg from 'pg';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';

export interface FlowruleRow {
  readonly uuid: string;
  readonly sequence: number;
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  /** JSON text of the canonical wire fields. */
  readonly fields: string;
  readonly attack_uuid: string | null;
  /** Why it is not to be announced; null: it is. */
  readonly held: string | null;
  /** Milliseconds since 1970, as the others. */
  readonly created_ms: number;
  readonly updated_ms: number;
  readonly expires_ms: number | null;
  readonly change_xid: number;
  readonly change_position: number;
  readonly deleted: boolean;
  /** The change_position that the BGP speaker has; null: nothing of it. */
  readonly applied_position: number | null;
  readonly applied_ms: number | null;
  /** Why the speaker does not have the present change. */
  readonly failure: string | null;
}

const milliseconds = (column: string) => `round(date_part('epoch', ${column}) * 1000)`;

/** Of `flowrule r`. */
export const flowruleColumns = `r.uuid::text as uuid, r.sequence, r.owner_uuid::text as owner_uuid,
  r.provider_uuid::text as provider_uuid, r.fields::text as fields, r.attack_uuid::text as attack_uuid, r.held,
  ${milliseconds('r.created_at')} as created_ms, ${milliseconds('r.updated_at')} as updated_ms,
  ${milliseconds('r.expires_at')} as expires_ms, r.change_xid::text::int8 as change_xid, r.change_position,
  r.deletion_marked_at is not null as deleted, r.applied_position, ${milliseconds('r.applied_at')} as applied_ms, r.failure`;

const source: ListSource = { name: 'flowrules', table: 'flowrule', columns: flowruleColumns };

export function flowruleChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly FlowruleRow[]> {
  return chunksOf<FlowruleRow>(pool, source, scope);
}

const readStatement = {
  name: 'flowrule_read',
  text: `select ${flowruleColumns} from flowrule r where r.uuid = $1 and (r.owner_uuid = $2 or r.provider_uuid = $2)`,
};

/** Undefined: there is none for this account. `uuid` is well-formed. */
export async function readFlowrule(
  executor: Executor,
  accountUuid: string,
  uuid: string,
): Promise<FlowruleRow | undefined> {
  const [row] = await executor.rows<FlowruleRow>(readStatement, [uuid, accountUuid]);
  return row;
}
