/** Reads PTR records and the zones in which they stand; lists of records come in chunks. */
import type { KeptZone } from '@levee/core/rdns/nested-zones.ts';
import { reverseZoneFromTrusted } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import type pg from 'pg';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';
import { type RdnsRow, rdnsColumns, type ZoneRow, zoneColumns } from './rdns-row.ts';

const source: ListSource = {
  name: 'rdns',
  table: 'rdns_record',
  columns: rdnsColumns,
  covers: 'r.address <<= $::inet',
};

export function rdnsChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly RdnsRow[]> {
  return chunksOf<RdnsRow>(pool, source, scope);
}

const readStatement = { name: 'rdns_read', text: `select ${rdnsColumns} from rdns_record r where r.uuid = $1` };

export async function readRdns(executor: Executor, uuid: string): Promise<RdnsRow | undefined> {
  const [row] = await executor.rows<RdnsRow>(readStatement, [uuid]);
  return row;
}

/** A zone's row with what its name says. */
export type KnownZone = KeptZone & { readonly row: ZoneRow };

export function knownZone(row: ZoneRow): KnownZone {
  const { zone, driver, settings } = row;
  return { ...reverseZoneFromTrusted(zone), driver, nameservers: settings.nameservers, row };
}

const zonesStatement = {
  name: 'rdns_zones',
  text: `select ${zoneColumns} from rdns_zone z order by z.created_at, z.uuid`,
};

/** All of them, in order of creation. */
export async function loadZones(executor: Executor): Promise<KnownZone[]> {
  const rows = await executor.rows<ZoneRow>(zonesStatement, []);
  return rows.map(knownZone);
}

export async function loadZoneIndex(executor: Executor): Promise<ZoneIndex<KnownZone>> {
  return new ZoneIndex(await loadZones(executor));
}
