/** The flowrule as rows give it to http and commands. Owns the columns that are selected and lists read; renders nothing. */
import type pg from 'pg';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';
import { milliseconds, type StoredRow, storedColumns } from './stored-row.ts';

export interface FlowruleRow extends StoredRow {
  readonly attack_uuid: string | null;
  /** Who made it: the service for an attack or a policy, or the operator. */
  readonly origin: 'attack' | 'policy' | 'operator';
  /** Why it is not to be announced; null: it is. */
  readonly held: string | null;
  /** The change_position that the BGP speaker has or may have, `applied_ms` being null until it has; null: nothing of it. */
  readonly applied_position: number | null;
  /** Milliseconds since 1970. */
  readonly applied_ms: number | null;
  /** Why the speaker does not have the present change. */
  readonly failure: string | null;
  /** What is known of the speaker itself; null: nothing yet. */
  readonly speaker: FlowruleSpeaker | null;
}

export interface FlowruleSpeaker {
  readonly name: string;
  /** Why it is away; null: it is not. */
  readonly trouble: string | null;
  /** Milliseconds since 1970: of the trouble, or since it is well. */
  readonly since_ms: number;
  /** null: it does not tell. */
  readonly peers: readonly { readonly address: string; readonly established: boolean }[] | null;
}

/** One row or none, whatever the query is about: read once for all of its rows. */
export const speakerColumn = `(select json_build_object('name', name, 'trouble', trouble, 'peers', peers,
    'since_ms', floor(extract(epoch from since) * 1000)) from bgp_speaker)`;

/** Of `flowrule r`. */
export const flowruleColumns = `${storedColumns}, r.attack_uuid::text as attack_uuid, r.origin, r.held, r.applied_position,
  ${milliseconds('r.applied_at')} as applied_ms, r.failure, ${speakerColumn} as speaker`;

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
