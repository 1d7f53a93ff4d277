/**
 * Rows that tests of the store and the agents stand on: a provider with a prefix, and rules in it, written by the same
 * kind of statement as a command's: the row and its change in one transaction.
 */
import type { Statements } from '../change-log.ts';
import { newUuid } from '../new-uuid.ts';
import { markingText, type StoredKindName } from '../stored-kinds.ts';

export interface SeededProvider {
  readonly uuid: string;
  readonly prefix: string;
}

const run = (db: Statements, text: string, values: unknown[]) =>
  (db as { query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }> }).query(text, values);

export async function seedProvider(db: Statements, prefix = '198.18.0.0/15'): Promise<SeededProvider> {
  const uuid = newUuid();
  await run(db, `insert into account (uuid, role, provider_uuid, name) values ($1, 'provider', $1, $2)`, [uuid, uuid]);
  await run(
    db,
    `insert into subnet (account_uuid, subnet, role, provider_uuid, created_at)
      values ($1, $2, 'provider', $1, '2020-01-01')`,
    [uuid, prefix],
  );
  return { uuid, prefix };
}

export interface SeededChange {
  readonly uuid: string;
  readonly change: { readonly xid: string; readonly position: number };
}

export async function seedRule(
  db: Statements,
  provider: SeededProvider,
  fields: Record<string, unknown> = {},
  expiresAt: Date | null = null,
): Promise<SeededChange> {
  const uuid = newUuid();
  const canonical = { dst: '198.18.0.1', protocol: 'udp', action: 'drop', priority: 1000, disabled: false, ...fields };
  const { rows } = await run(
    db,
    `with drawn as (select nextval('change_position') as position), rule as (
        insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at,
          updated_at, expires_at, change_position)
        select $1, position, $2, $2, $3, $4, $5, now(), now(), $6, position from drawn
        returning change_xid, change_position
      ), logged as (
        insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', $1 from rule
      )
      select change_xid::text as xid, change_position as position from rule`,
    [uuid, provider.uuid, provider.prefix, canonical.dst, JSON.stringify(canonical), expiresAt],
  );
  return { uuid, change: rows[0] as SeededChange['change'] };
}

export async function seedPriority(db: Statements, uuid: string, priority: number): Promise<SeededChange> {
  const { rows } = await run(
    db,
    `with changed as (
        update firewall_rule set fields = (fields::jsonb || jsonb_build_object('priority', $2::int))::json,
          updated_at = now(), change_xid = pg_current_xact_id(), change_position = nextval('change_position')
        where uuid = $1 returning change_xid, change_position
      ), logged as (
        insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', $1 from changed
      )
      select change_xid::text as xid, change_position as position from changed`,
    [uuid, priority],
  );
  return { uuid, change: rows[0] as SeededChange['change'] };
}

/** Marks it, as commands do. */
export async function seedDeletion(
  db: Statements,
  uuid: string,
  kind: StoredKindName = 'firewall_rule',
): Promise<SeededChange> {
  const { rows } = await run(
    db,
    `with ${markingText(kind, 'r.uuid = $1')}
      select change_xid::text as xid, change_position as position from marked`,
    [uuid],
  );
  return { uuid, change: rows[0] as SeededChange['change'] };
}

export async function seedFilter(
  db: Statements,
  provider: SeededProvider,
  fields: Record<string, unknown> = {},
): Promise<SeededChange> {
  const uuid = newUuid();
  const canonical = { dst: '198.18.0.1', filter: 22, priority: 1000, ...fields };
  const { rows } = await run(
    db,
    `with drawn as (select nextval('change_position') as position), filter as (
        insert into filter (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, kind, fields, created_at, updated_at,
          change_position)
        select $1, position, $2, $2, $3, $4, $5, $6, now(), now(), position from drawn
        returning change_xid, change_position
      ), logged as (
        insert into change (position, kind, object_uuid) select change_position, 'filter', $1 from filter
      )
      select change_xid::text as xid, change_position as position from filter`,
    [uuid, provider.uuid, provider.prefix, canonical.dst, canonical.filter, JSON.stringify(canonical)],
  );
  return { uuid, change: rows[0] as SeededChange['change'] };
}

/** A GRE tunnel without ends. */
export async function seedTunnel(
  db: Statements,
  provider: SeededProvider,
  fields: Record<string, unknown> = {},
): Promise<SeededChange> {
  const uuid = newUuid();
  const canonical = { ips: ['198.18.0.0/28'], endpoint: '198.51.100.9', type: 'GRE', ...fields };
  await run(
    db,
    `insert into tunnel (uuid, sequence, owner_uuid, provider_uuid, endpoint, type, fields, created_at, updated_at,
        change_position)
      select $1, position, $2, $2, $3, $4, $5, now(), now(), position from (select nextval('change_position')) d (position)`,
    [uuid, provider.uuid, canonical.endpoint, canonical.type, JSON.stringify(canonical)],
  );
  return seedTunnelChange(db, uuid);
}

/** `number`: GRE's key, and the place of the pair of inner addresses. Makes no entry. */
export async function seedEnd(db: Statements, tunnel: string, router: string, number: number): Promise<void> {
  await run(
    db,
    `insert into tunnel_end (tunnel_uuid, router_uuid, local_endpoint, number, inner_ipv4, inner_ipv6)
      values ($1, $2, '192.0.2.1', $3::int8, set_masklen('10.255.0.0'::inet + 2 * $3::int8, 31)::cidr,
        set_masklen('fd00::'::inet + 2 * $3::int8, 127)::cidr)`,
    [tunnel, router, number],
  );
}

/** As whatever changes a tunnel's row, or its ends on a live router, enters it. */
export async function seedTunnelChange(db: Statements, uuid: string): Promise<SeededChange> {
  const { rows } = await run(
    db,
    `with changed as (
        update tunnel set change_xid = pg_current_xact_id(), change_position = nextval('change_position')
        where uuid = $1 returning change_xid, change_position
      ), logged as (
        insert into change (position, kind, object_uuid) select change_position, 'tunnel', $1 from changed
      )
      select change_xid::text as xid, change_position as position from changed`,
    [uuid],
  );
  return { uuid, change: rows[0] as SeededChange['change'] };
}
