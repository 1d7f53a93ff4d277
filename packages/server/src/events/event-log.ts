/**
 * Writes events, and what was last told of each object, in one transaction with the place up to which the change log was
 * followed. For the leader alone, on the connection that holds its lock. Decides nothing about what is an event.
 */
import { randomBytes } from 'node:crypto';
import type { EventObject } from '@levee/contract/event-names.ts';
import type pg from 'pg';
import { readHorizon } from '../store/change-log.ts';
import { type Cursor, compareCursors } from '../store/cursor.ts';
import { readLogIdentity } from '../store/log-identity.ts';
import { inTransactionOn } from '../store/transaction.ts';
import type { RenderedObject } from './objects.ts';
import { isOpen, type Told } from './transitions.ts';

export interface TellObject {
  readonly kind: EventObject;
  readonly object: RenderedObject;
  /** Second parts of names; may be empty when only `told` is to be kept. */
  readonly whats: readonly string[];
  /** What counts as told from now on. */
  readonly state: string;
}

export interface ToTell {
  readonly objects: readonly TellObject[];
  /** Whose rows are gone. */
  readonly deleted: readonly string[];
  readonly cursor: Cursor;
}

export interface FollowedFrom {
  readonly cursor: Cursor;
  /** Nothing was followed before: what is there is no news. */
  readonly first: boolean;
}

interface LogRow {
  readonly log: string;
  readonly xid: string;
  readonly position: number;
}

const newEpoch = () => randomBytes(4).toString('hex');

/**
 * Where to follow the change log from. When entries were missed, clients are told by another epoch, and the log is followed
 * from where it begins now. `identity`: of the log that this replica follows; throws when the connection leads to another
 * one, whose numbers may not have been brought into it yet.
 */
export async function takeUp(client: pg.Client, identity: string): Promise<FollowedFrom> {
  return inTransactionOn(client, async () => {
    const log = await readLogIdentity(client);
    if (log !== identity) throw new Error('the change log is another one');
    const { next, floor } = await readHorizon(client);
    const { rows } = await client.query<LogRow>('select log, xid::text as xid, position from event_log for update');
    const [row] = rows;
    const from = row === undefined ? next : floor;
    const values = [newEpoch(), log, String(from.xid), from.position];
    if (row === undefined) {
      await client.query('insert into event_log (epoch, log, xid, position) values ($1, $2, $3, $4)', values);
      return { cursor: from, first: true };
    }
    const cursor = { xid: Number(row.xid), position: row.position };
    const isInLog = compareCursors(cursor, floor) >= 0 && compareCursors(cursor, next) <= 0;
    if (row.log === log && isInLog) return { cursor, first: false };
    await client.query('update event_log set epoch = $1, log = $2, xid = $3, position = $4', values);
    return { cursor: from, first: false };
  });
}

const WRITE = `with told as (
    insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
    select name, object, owner, provider, data::json
    from unnest($1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[])
      with ordinality e (name, object, owner, provider, data, place)
    order by place
    returning sequence
  )
  select min(sequence) as first from told`;

const KEEP = `insert into event_object as o (object_uuid, kind, owner_uuid, provider_uuid, change_position, state, open,
    event_sequence)
  select k.object, k.kind, k.owner, k.provider, k.position, k.state, k.open, e.sequence
  from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::int8[], $6::text[], $7::bool[])
    k (object, kind, owner, provider, position, state, open)
  left join (select object_uuid, max(sequence) as sequence from event where sequence >= $8 group by object_uuid) e
    on e.object_uuid = k.object
  on conflict (object_uuid) do update set change_position = excluded.change_position, state = excluded.state,
    open = excluded.open, event_sequence = coalesce(excluded.event_sequence, o.event_sequence)`;

/** Of an object whose last event is forgotten no more is known than whose it was. */
const DELETED = `with gone as (
    delete from event_object where object_uuid = any($1::uuid[]) returning *
  ), told as (
    insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
    select g.kind || '.deleted', g.object_uuid, g.owner_uuid, g.provider_uuid, coalesce(e.data, json_build_object(
      'uuid', g.object_uuid, 'owner_uuid', g.owner_uuid, 'state', 'marked_for_deletion'))
    from gone g left join event e on e.sequence = g.event_sequence
    order by g.change_position
    returning sequence
  )
  select min(sequence) as first from told`;

/** True when there is something new to read. */
export async function tell(client: pg.Client, { objects, deleted, cursor }: ToTell): Promise<boolean> {
  return inTransactionOn(client, async () => {
    const written = await writeEvents(client, objects);
    if (objects.length > 0) await keepTold(client, objects, written);
    const gone = deleted.length > 0 ? await writeDeleted(client, deleted) : undefined;
    await client.query({
      name: 'events_followed',
      text: 'update event_log set xid = $1, position = $2',
      values: [String(cursor.xid), cursor.position],
    });
    return (written ?? gone) !== undefined;
  });
}

/** The first one's sequence; undefined: there is none. */
async function writeEvents(client: pg.Client, objects: readonly TellObject[]): Promise<number | undefined> {
  const events = objects.flatMap(({ kind, object, whats }) =>
    whats.map((what) => ({ ...object, name: `${kind}.${what}` })),
  );
  if (events.length === 0) return undefined;
  const { rows } = await client.query<{ first: number }>({
    name: 'events_write',
    text: WRITE,
    values: [
      events.map(({ name }) => name),
      events.map(({ uuid }) => uuid),
      events.map(({ ownerUuid }) => ownerUuid),
      events.map(({ providerUuid }) => providerUuid),
      events.map(({ text }) => text),
    ],
  });
  return rows[0]?.first;
}

async function keepTold(client: pg.Client, objects: readonly TellObject[], first: number | undefined): Promise<void> {
  await client.query({
    name: 'events_keep',
    text: KEEP,
    values: [
      objects.map(({ object }) => object.uuid),
      objects.map(({ kind }) => kind),
      objects.map(({ object }) => object.ownerUuid),
      objects.map(({ object }) => object.providerUuid),
      objects.map(({ object }) => object.change.position),
      objects.map(({ state }) => state),
      objects.map(({ kind, state }) => isOpen(kind, state)),
      first ?? Number.MAX_SAFE_INTEGER,
    ],
  });
}

async function writeDeleted(client: pg.Client, uuids: readonly string[]): Promise<number | undefined> {
  const { rows } = await client.query<{ first: number | null }>({
    name: 'events_deleted',
    text: DELETED,
    values: [uuids],
  });
  return rows[0]?.first ?? undefined;
}

export interface ToldObject extends Told {
  readonly uuid: string;
  readonly kind: EventObject;
}

export async function loadTold(client: pg.Client, uuids: readonly string[]): Promise<ReadonlyMap<string, ToldObject>> {
  const { rows } = await client.query<ToldObject>({
    name: 'events_told',
    text: `select object_uuid::text as uuid, kind, change_position as "changePosition", state from event_object
      where object_uuid = any($1::uuid[])`,
    values: [uuids],
  });
  return new Map(rows.map((row) => [row.uuid, row]));
}

/** All that something is still to come of. */
export async function loadOpen(client: pg.Client): Promise<readonly ToldObject[]> {
  const { rows } = await client.query<ToldObject>(
    `select object_uuid::text as uuid, kind, change_position as "changePosition", state from event_object where open`,
  );
  return rows;
}
