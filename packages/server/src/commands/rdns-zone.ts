/**
 * The operator's reverse zones: creates, changes, lists, removes them. Zones nest or are apart, which a lock on the table
 * sees to: they are written a few times a year. Whatever is done to a zone, the records of its addresses are to be
 * applied anew, wherever they stand from then on.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import type { ReverseZone } from '@levee/core/rdns/reverse-name.ts';
import { zoneClash } from '@levee/core/rdns/zone-index.ts';
import {
  parseZoneSettings,
  type ZoneDriver,
  type ZoneDriverSettings,
  type ZoneFields,
} from '@levee/core/rdns/zone-settings.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { type ZoneRow, zoneColumns } from './rdns-row.ts';
import { type KnownZone, knownZone, loadZones } from './read-rdns.ts';

export interface ZoneCounts {
  readonly applied: number;
  readonly pending: number;
  readonly failed: number;
}

export interface CountedZone {
  readonly zone: KnownZone;
  readonly counts: ZoneCounts;
}

const lockStatement = { name: 'rdns_zones_lock', text: 'lock table rdns_zone in share row exclusive mode' };

const createStatement = {
  name: 'rdns_zone_create',
  text: `with created as (
      insert into rdns_zone as z (uuid, zone, driver, settings, first_address, last_address, serial)
      values ($1, $2, $3, $4, $5, $6, extract(epoch from clock_timestamp())::int8) returning ${zoneColumns}
    ), logged as (insert into change (kind, object_uuid) select 'rdns_zone', uuid::uuid from created)
    select * from created`,
};

/** What its former server said is no longer true of it. */
const changeStatement = {
  name: 'rdns_zone_change',
  text: `with changed as (
      update rdns_zone z set driver = $2, settings = $3, updated_at = now(), checked_at = null, trouble = null,
        trouble_since = null, last_error = null, last_error_at = null
      where z.uuid = $1 returning ${zoneColumns}
    ), logged as (insert into change (kind, object_uuid) select 'rdns_zone', uuid::uuid from changed)
    select * from changed`,
};

const deleteStatement = {
  name: 'rdns_zone_delete',
  text: `with gone as (delete from rdns_zone where uuid = $1 returning uuid)
    insert into change (kind, object_uuid) select 'rdns_zone', uuid from gone returning 1`,
};

/** Also of narrower zones inside: applying a record twice changes nothing. */
const reapplyStatement = {
  name: 'rdns_reapply',
  text: `with fresh as (
      update rdns_record set applied_position = null, applied_at = null, failure = null
      where address between $1 and $2 and (applied_position is not null or failure is not null)
      returning uuid
    )
    insert into change (kind, object_uuid) select 'rdns', uuid from fresh`,
};

async function reapply(executor: Executor, zone: ReverseZone): Promise<void> {
  await executor.rows(reapplyStatement, endsOf(zone));
}

/**
 * Embedded zones say something of each other: a zone delegates those below it, leads into classless ones, and lends them its
 * name servers. Whatever is done to one, all that nest with it have another content, and so another serial.
 */
const serialStatement = {
  name: 'rdns_zone_serials',
  text: `with raised as (
      update rdns_zone set serial = greatest(serial + 1, extract(epoch from clock_timestamp())::int8),
        serial_position = nextval('change_position')
      where driver = 'embedded' and first_address <= $2 and last_address >= $1
      returning uuid, serial_position
    )
    insert into change (position, kind, object_uuid) select serial_position, 'rdns_zone', uuid from raised`,
};

async function raiseSerials(executor: Executor, zone: ReverseZone): Promise<void> {
  await executor.rows(serialStatement, endsOf(zone));
}

function endsOf({ range: { family, start, end } }: ReverseZone): string[] {
  return [start, end].map((value) => formatAddress({ family, value }));
}

export interface NewZone {
  readonly uuid: string;
  readonly zone: ReverseZone;
  readonly driver: ZoneDriver;
  readonly settings: ZoneDriverSettings;
}

/** In a transaction. */
export async function createZone(executor: Executor, given: NewZone): Promise<Outcome<KnownZone>> {
  await executor.rows(lockStatement, []);
  const { zone, driver, settings } = given;
  for (const other of await loadZones(executor)) {
    const clash = zoneClash(zone, other);
    if (clash !== undefined) return refuse('conflict', clashProblem(clash, zone.name, other.name));
  }
  const values = [given.uuid, zone.name, driver, JSON.stringify(settings), ...endsOf(zone)];
  const [row] = await executor.rows<ZoneRow>(createStatement, values);
  if (row === undefined) throw new Error('a zone was not stored');
  await raiseSerials(executor, zone);
  await reapply(executor, zone);
  return done(knownZone(row));
}

export interface ChangedZone {
  readonly before: KnownZone;
  readonly after: KnownZone;
}

/** In a transaction. What is not given stays, as far as the driver uses it. */
export async function changeZone(
  executor: Executor,
  uuid: string,
  fields: Partial<ZoneFields>,
): Promise<Outcome<ChangedZone>> {
  await executor.rows(lockStatement, []);
  const before = (await loadZones(executor)).find((zone) => zone.row.uuid === uuid);
  if (before === undefined) return refuse('not_found');
  const driver = fields.driver ?? before.row.driver;
  const parsed = parseZoneSettings({ ...fields, driver }, before.row.settings);
  const narrow = driver === 'embedded' && isSingleName(before) ? [singleName('/driver', before.name)] : [];
  if (!parsed.ok) return refuse('validation_failed', ...parsed.problems, ...narrow);
  if (narrow.length > 0) return refuse('validation_failed', ...narrow);
  const [row] = await executor.rows<ZoneRow>(changeStatement, [uuid, driver, JSON.stringify(parsed.settings)]);
  if (row === undefined) throw new Error('a locked zone is gone');
  await raiseSerials(executor, before);
  await reapply(executor, before);
  return done({ before, after: knownZone(row) });
}

/** In a transaction. */
export async function deleteZone(executor: Executor, uuid: string): Promise<Outcome<KnownZone>> {
  await executor.rows(lockStatement, []);
  const zone = (await loadZones(executor)).find(({ row }) => row.uuid === uuid);
  if (zone === undefined) return refuse('not_found');
  await executor.rows(deleteStatement, [uuid]);
  await raiseSerials(executor, zone);
  await reapply(executor, zone);
  return done(zone);
}

const countStatement = {
  name: 'rdns_zone_counts',
  text: `select z.uuid::text as uuid, c.* from rdns_zone z cross join lateral (
      select count(*) filter (where applied_position is not distinct from change_position) as applied,
        count(*) filter (where applied_position is distinct from change_position) as pending,
        count(*) filter (where applied_position is distinct from change_position and failure is not null) as failed
      from rdns_record where address between z.first_address and z.last_address
    ) c`,
};

/** How many records each zone has itself: those inside it, without those inside the narrower zones in it. */
export async function countZones(executor: Executor): Promise<CountedZone[]> {
  const zones = await loadZones(executor);
  const rows = await executor.rows<ZoneCounts & { uuid: string }>(countStatement, []);
  const inside = new Map(rows.map((row) => [row.uuid, row]));
  const none: ZoneCounts = { applied: 0, pending: 0, failed: 0 };
  const totals = new Map(zones.map((zone) => [zone, { ...(inside.get(zone.row.uuid) ?? none) }]));
  for (const zone of zones) {
    const parent = parentOf(zone, zones);
    const total = parent === undefined ? undefined : totals.get(parent);
    const own = inside.get(zone.row.uuid) ?? none;
    if (total === undefined) continue;
    total.applied -= own.applied;
    total.pending -= own.pending;
    total.failed -= own.failed;
  }
  return zones.map((zone) => ({ zone, counts: totals.get(zone) ?? none }));
}

/** The narrowest zone in which this one lies. */
function parentOf(zone: KnownZone, zones: readonly KnownZone[]): KnownZone | undefined {
  const { family, start, end } = zone.range;
  let parent: KnownZone | undefined;
  for (const other of zones) {
    const { range } = other;
    if (other === zone || range.family !== family || range.start > start || range.end < end) continue;
    if (parent === undefined || range.end - range.start < parent.range.end - parent.range.start) parent = other;
  }
  return parent;
}

/** The zone of one address has no name below it: its PTR record would be the zone's own. */
export function isSingleName({ range, classless }: ReverseZone): boolean {
  return !classless && range.start === range.end;
}

export function singleName(field: string, name: string): Problem {
  const message = `${field.slice(1)}: ${name} is one address, and the embedded DNS server serves zones of more than one name; take the next wider zone`;
  return { field, code: 'not_used', message };
}

function clashProblem(clash: 'same_name' | 'same_addresses' | 'overlap', name: string, other: string): Problem {
  if (clash === 'same_name') {
    return { field: '/zone', code: 'already_exists', message: `zone: ${name} is there already; PATCH changes it` };
  }
  const why =
    clash === 'same_addresses'
      ? `covers the same addresses as ${other}`
      : `covers a part of ${other}, which covers more; zones must nest or be apart`;
  return { field: '/zone', code: clash, message: `zone: ${name} ${why}` };
}
