/** Rows that tests of the BGP reconciler stand on, written as commands write them. Test code only. */
import { compileRoute, type RouteKey, type RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { parseAddress } from '@levee/core/net/address.ts';
import type { Address } from '@levee/core/net/prefix.ts';
import type pg from 'pg';
import { newUuid } from '../../../store/new-uuid.ts';
import type { SeededProvider } from '../../../store/testing/seed.ts';

type Pool = Pick<pg.Pool, 'query'>;

function address(text: string): Address {
  const read = parseAddress(text);
  if (!read.ok) throw new Error(text);
  return read.address;
}

export const testRoutes: RouteOptions = {
  mark: { administrator: 4_200_000_000, first: 17, second: 1 },
  nextHopIpv4: address('192.0.2.1'),
  nextHopIpv6: address('100::1'),
  noExport: true,
};

export interface SeedFlowrule {
  readonly fields: Readonly<Record<string, unknown>>;
  /** In the column; `fields.dst` when absent. */
  readonly dst?: string;
  readonly held?: string;
  readonly expiresAt?: Date;
}

/** Whatever the fields are: what commands refuse can be stored. */
export async function seedFlowrule(
  pool: Pool,
  provider: SeededProvider,
  { fields, dst, held, expiresAt }: SeedFlowrule,
): Promise<string> {
  const uuid = newUuid();
  const nlri = JSON.stringify(fields.action === 'blackhole' ? [fields.dst] : [fields.dst, fields.components]);
  await pool.query(
    `with drawn as (select nextval('change_position') as position), created as (
        insert into flowrule (uuid, sequence, owner_uuid, provider_uuid, dst, prefix, fields, nlri, held, created_at,
          updated_at, expires_at, change_position)
        select $1, position, $2, $2, $3, $4, $5, $6, $7, now(), now(), $8, position from drawn
        returning change_position
      )
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', $1 from created`,
    [
      uuid,
      provider.uuid,
      dst ?? fields.dst,
      provider.prefix,
      JSON.stringify(fields),
      nlri,
      held ?? null,
      expiresAt ?? null,
    ],
  );
  return uuid;
}

/** Nothing happens to one that is marked. */
export async function seedFlowruleDeletion(pool: Pool, uuid: string): Promise<void> {
  await pool.query(
    `with marked as (
        update flowrule set deletion_marked_at = now(), prefix = null, change_xid = pg_current_xact_id(),
          change_position = nextval('change_position')
        where uuid = $1 and deletion_marked_at is null returning change_position
      )
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', $1 from marked`,
    [uuid],
  );
}

export async function seedHold(pool: Pool, uuid: string, held: string | null): Promise<void> {
  await pool.query(
    `with changed as (
        update flowrule set held = $2, change_xid = pg_current_xact_id(), change_position = nextval('change_position')
        where uuid = $1 and deletion_marked_at is null returning change_position
      )
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', $1 from changed`,
    [uuid, held],
  );
}

export interface ReadFlowrule {
  readonly uuid: string;
  readonly dst: string;
  readonly active: boolean;
  readonly deleted: boolean;
  readonly applied: boolean;
  readonly failure: string | null;
}

export async function readFlowrules(pool: Pool): Promise<ReadFlowrule[]> {
  const { rows } = await pool.query<ReadFlowrule>(
    `select uuid::text as uuid, dst::text as dst, deletion_marked_at is not null as deleted,
        applied_position is not null as applied, failure,
        applied_position is not distinct from change_position and applied_at is not null as active
      from flowrule order by sequence`,
  );
  return rows;
}

/** What the route of valid fields is called. */
export function keyOfFields(fields: unknown): RouteKey {
  return routeOfFields(fields).key;
}

export function routeOfFields(fields: unknown, options: RouteOptions = testRoutes) {
  const parsed = parseFlowrule(fields);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const compiled = compileRoute(parsed.flowrule, options);
  if (!compiled.ok) throw new Error(compiled.reason);
  return compiled.route;
}
