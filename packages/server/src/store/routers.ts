/**
 * Locations and routers as rows: creating, listing, enrolling, removing. Keys and tokens leave this file once, as
 * text, to whoever asked; the database only ever holds their SHA-256.
 */
import { createHash, randomBytes } from 'node:crypto';
import { KEY_RANDOM_BYTES, makeKey, parseKeyRole } from '@levee/core/account/key.ts';
import type pg from 'pg';
import type { Statements } from './change-log.ts';
import { newUuid } from './new-uuid.ts';
import { recordOwnAction } from './own-actions.ts';
import { inTransaction } from './transaction.ts';

export interface LocationRow {
  readonly uuid: string;
  readonly name: string;
  readonly created_at: Date;
}

export interface RouterRow {
  readonly uuid: string;
  readonly name: string;
  /** Name of its location. */
  readonly location: string;
  /** IPv4 first. */
  readonly tunnel_addresses: readonly string[];
  readonly created_at: Date;
  readonly enrolled: boolean;
  readonly enrolled_at: Date | null;
  readonly enforcement: 'kernel' | 'dry' | null;
  readonly enforcement_reason: string | null;
  readonly last_seen_at: Date | null;
  /** What its agent last told of itself and its machine. */
  readonly status: Readonly<Record<string, unknown>> | null;
}

export const ENROLMENT_SECONDS = 3600;

export function secretHash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

const run = <R extends pg.QueryResultRow>(db: Statements, text: string, values: unknown[] = []) =>
  (db as pg.ClientBase).query<R>(text, values).then((result) => result.rows);

/** A name that is taken violates `location_name`. */
export async function createLocation(db: Statements, name: string): Promise<LocationRow> {
  const [row] = await run<LocationRow>(
    db,
    'insert into location (uuid, name) values ($1, $2) returning uuid::text as uuid, name, created_at',
    [newUuid(), name],
  );
  if (row === undefined) throw new Error('insert into location returned nothing');
  return row;
}

export function listLocations(db: Statements): Promise<LocationRow[]> {
  return run<LocationRow>(db, 'select uuid::text as uuid, name, created_at from location order by created_at, uuid');
}

/** host() leaves out the length: a tunnel's end is one address. */
const ROUTER_COLUMNS = `r.uuid::text as uuid, r.name, l.name as location,
  array(select host(a.address) from router_address a where a.router_uuid = r.uuid order by a.family) as tunnel_addresses,
  r.created_at,
  r.enrolled_at is not null as enrolled, r.enrolled_at, r.status, r.enforcement, r.enforcement_reason, r.last_seen_at`;

export function listRouters(db: Statements): Promise<RouterRow[]> {
  return run<RouterRow>(
    db,
    `select ${ROUTER_COLUMNS} from router r join location l on l.uuid = r.location_uuid order by r.created_at, r.uuid`,
  );
}

export async function readRouter(db: Statements, uuid: string): Promise<RouterRow | undefined> {
  const [row] = await run<RouterRow>(
    db,
    `select ${ROUTER_COLUMNS} from router r join location l on l.uuid = r.location_uuid where r.uuid = $1`,
    [uuid],
  );
  return row;
}

/**
 * Inside a transaction. The lock keeps routers from being announced there meanwhile: their foreign key waits for it.
 */
export async function removeLocation(db: Statements, uuid: string): Promise<LocationRow | 'in_use' | 'not_found'> {
  const [found] = await run<LocationRow>(
    db,
    'select uuid::text as uuid, name, created_at from location where uuid = $1 for update',
    [uuid],
  );
  if (found === undefined) return 'not_found';
  const removed = await run(
    db,
    `delete from location where uuid = $1 and not exists (select from router where location_uuid = $1) returning 1`,
    [uuid],
  );
  return removed.length > 0 ? found : 'in_use';
}

export interface NewRouter {
  readonly name: string;
  /** Name or uuid of its location. */
  readonly location: string;
  /** Canonical, at most one a family. */
  readonly tunnelAddresses: readonly string[];
}

/** $1: name or uuid of a location. */
const LOCATION = `select uuid from location where name = $1 or uuid::text = lower($1)
  order by uuid::text = lower($1) desc limit 1`;

/** By its name or uuid; undefined: there is none. */
export async function findLocation(db: Statements, location: string): Promise<string | undefined> {
  return (await run<{ uuid: string }>(db, LOCATION, [location]))[0]?.uuid;
}

export type CreatedRouter =
  | { readonly ok: true; readonly router: RouterRow; readonly token: string; readonly expiresAt: Date }
  | { readonly ok: false; readonly code: 'location_not_found' };

/**
 * A name that is taken violates `router_name`, an address `router_address_taken`. The token enrols the router once, within
 * an hour.
 */
export async function createRouter(db: Statements, router: NewRouter): Promise<CreatedRouter> {
  const token = newToken();
  const uuid = newUuid();
  const [made] = await run<{ expires_at: Date }>(
    db,
    `with made as (
        insert into router (name, uuid, location_uuid, enrolment_hash, enrolment_expires_at)
        select $2, $3, l.uuid, $5, now() + make_interval(secs => $6) from (${LOCATION}) l
        returning *
      ), addresses as (
        insert into router_address (router_uuid, address) select uuid, unnest($4::inet[]) from made
      )
      select enrolment_expires_at as expires_at from made`,
    [router.location, router.name, uuid, router.tunnelAddresses, secretHash(token), ENROLMENT_SECONDS],
  );
  if (made === undefined) return { ok: false, code: 'location_not_found' };
  const created = await readRouter(db, uuid);
  if (created === undefined) throw new Error('a router just written is gone');
  return { ok: true, router: created, token, expiresAt: made.expires_at };
}

/** What is undefined stays. */
export interface RouterChange {
  readonly name?: string | undefined;
  readonly locationUuid?: string | undefined;
  readonly tunnelAddresses?: readonly string[] | undefined;
}

/** Inside a transaction. Violates the constraints that a new router may violate. */
export async function updateRouter(db: Statements, uuid: string, change: RouterChange): Promise<void> {
  const { name, locationUuid, tunnelAddresses: addresses } = change;
  await run(
    db,
    'update router set name = coalesce($2, name), location_uuid = coalesce($3, location_uuid) where uuid = $1',
    [uuid, name ?? null, locationUuid ?? null],
  );
  if (addresses === undefined) return;
  await run(db, 'delete from router_address where router_uuid = $1 and address <> all($2::inet[])', [uuid, addresses]);
  await run(
    db,
    `insert into router_address (router_uuid, address) select $1, a from unnest($2::inet[]) a
      where not exists (select from router_address where router_uuid = $1 and address = a)`,
    [uuid, addresses],
  );
}

function newToken(): string {
  return randomBytes(24).toString('base64url');
}

/** Another one-time token for a router; one that was not used yet is void. Its key stays until the token is used. */
export async function renewEnrolment(
  db: Statements,
  uuid: string,
): Promise<{ readonly router: RouterRow; readonly token: string; readonly expiresAt: Date } | undefined> {
  const token = newToken();
  const [row] = await run<RouterRow & { enrolment_expires_at: Date }>(
    db,
    `with r as (
        update router set enrolment_hash = $2, enrolment_expires_at = now() + make_interval(secs => $3)
        where uuid = $1 returning *
      )
      select ${ROUTER_COLUMNS}, r.enrolment_expires_at from r join location l on l.uuid = r.location_uuid`,
    [uuid, secretHash(token), ENROLMENT_SECONDS],
  );
  if (row === undefined) return undefined;
  const { enrolment_expires_at, ...router } = row;
  return { router, token, expiresAt: enrolment_expires_at };
}

export type Enrolment =
  | {
      readonly ok: true;
      readonly routerUuid: string;
      readonly name: string;
      readonly location: string;
      /** Shown this once. */
      readonly key: string;
    }
  | { readonly ok: false; readonly code: 'token_not_valid' };

/**
 * Of two that bring the same token, one gets the key and the other is refused. What the router's former machine
 * acknowledged, refused and told of its kernel is not true of this one: it is forgotten.
 */
export function enrolRouter(pool: pg.Pool, token: string): Promise<Enrolment> {
  return inTransaction(pool, async (client) => {
    const key = makeKey('router', randomBytes(KEY_RANDOM_BYTES));
    const [row] = await run<{ uuid: string; name: string; location: string }>(
      client,
      `update router r set key_hash = $2, enrolled_at = now(), enrolment_hash = null, enrolment_expires_at = null,
          acked_xid = null, acked_position = null, enforcement = null, enforcement_reason = null, table_left = false,
          last_seen_at = null, counters_run = null, counters_number = null, capabilities = '{}',
          waits_for_tunnels = false
        from location l
        where l.uuid = r.location_uuid and r.enrolment_hash = $1 and r.enrolment_expires_at > now()
        returning r.uuid::text as uuid, r.name, l.name as location`,
      [secretHash(token), secretHash(key)],
    );
    if (row === undefined) return { ok: false, code: 'token_not_valid' };
    // Statements of their own: only then do they see what a report stored that held the row until now.
    await run(client, 'delete from router_ack where router_uuid = $1', [row.uuid]);
    await run(client, 'delete from router_failure where router_uuid = $1', [row.uuid]);
    await run(client, 'delete from tunnel_probe where router_uuid = $1', [row.uuid]);
    const after = { name: row.name, location: row.location };
    await recordOwnAction(client, { action: 'enrol', kind: 'router', uuid: row.uuid, after });
    return { ok: true, routerUuid: row.uuid, name: row.name, location: row.location, key };
  });
}

/** False when there is none. Its acknowledgements and counts go too, and nothing waits for it any more. */
export async function removeRouter(db: Statements, uuid: string): Promise<boolean> {
  return (await run(db, 'delete from router where uuid = $1 returning 1', [uuid])).length > 0;
}

/** For the audit log, of the rows `own`. */
const enrolledText = `told as (
    insert into audit (operation, kind, object_uuid, after)
    select 'enrol', 'router', uuid, json_build_object('name', name) from own
  )`;

export const LOCAL_NAME = 'local';

export interface LocalRouter {
  /** Kept in the installation's data directory: by it, and never by its name, a router is known as our own. */
  readonly uuid: string;
  /** Of this machine; tells routers of several installations apart. */
  readonly hostName: string;
  /** What the edge has now. */
  readonly presentKey?: string | undefined;
}

/**
 * The router of this machine, made with its location when absent. `presentKey` is kept when it still is a router's key:
 * an edge that runs on is not locked out by a control plane that starts again. Otherwise a fresh key replaces whatever
 * key the router of that uuid had. Another installation's router, or one that an operator named `local`, is never
 * touched: where the name is taken, ours gets the host's name, or a part of its uuid, behind it.
 */
export async function ensureLocalRouter(
  db: Statements,
  { uuid, hostName, presentKey }: LocalRouter,
): Promise<{ readonly routerUuid: string; readonly key: string; readonly fresh: boolean }> {
  if (presentKey !== undefined && parseKeyRole(presentKey) === 'router') {
    const [kept] = await run<{ uuid: string }>(db, 'select uuid::text as uuid from router where key_hash = $1', [
      secretHash(presentKey),
    ]);
    if (kept !== undefined) return { routerUuid: kept.uuid, key: presentKey, fresh: false };
  }
  const key = makeKey('router', randomBytes(KEY_RANDOM_BYTES));
  for (const name of [...localNames(uuid, hostName), undefined]) {
    const own = await run(
      db,
      `with own as (
          update router set key_hash = $2, enrolled_at = coalesce(enrolled_at, now()) where uuid = $1 returning uuid, name
        ), ${enrolledText} select 1 from own`,
      [uuid, secretHash(key)],
    );
    if (own.length > 0) return { routerUuid: uuid, key, fresh: true };
    if (name === undefined) break;
    await run(db, 'insert into location (uuid, name) values ($1, $2) on conflict (name) do nothing', [newUuid(), name]);
    const made = await run(
      db,
      `with own as (
          insert into router (uuid, name, location_uuid, key_hash, enrolled_at)
          select $1, $2, uuid, $3, now() from location where name = $2
          on conflict do nothing returning uuid, name
        ), ${enrolledText} select 1 from own`,
      [uuid, name, secretHash(key)],
    );
    if (made.length > 0) return { routerUuid: uuid, key, fresh: true };
  }
  throw new Error('the local router was neither found nor made');
}

/** The last one is taken by nobody else: it holds the whole uuid. */
export function localNames(uuid: string, hostName: string): string[] {
  const host = hostName
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 40);
  const named = host === '' ? LOCAL_NAME : `${LOCAL_NAME}-${host}`;
  return [LOCAL_NAME, named, `${named}-${uuid.slice(-6)}`, `${LOCAL_NAME}-${uuid}`];
}
