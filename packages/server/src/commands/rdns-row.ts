/** Which columns of a PTR record and of a reverse zone are read, and the rows' shapes. Renders nothing. */
import type { ZoneDriver, ZoneDriverSettings } from '@levee/core/rdns/zone-settings.ts';
import { milliseconds, type StoredRow } from './stored-row.ts';

export interface RdnsRow extends StoredRow {
  readonly address: string;
  readonly record: string;
  readonly applied_position: number | null;
  readonly applied_ms: number | null;
  readonly failure: string | null;
  /** The change was sent together with refused ones, and has yet to be tried apart from them. */
  readonly held: boolean;
  readonly forward_confirmed: boolean | null;
}

/** host() leaves out the length. Names and addresses hold nothing that JSON escapes. */
const fields = `'{"ips":"' || host(r.address) || '","record":"' || r.record || '"}'`;

/** Of `rdns_record r`. */
export const rdnsColumns = `r.uuid::text as uuid, r.sequence, r.owner_uuid::text as owner_uuid,
  r.provider_uuid::text as provider_uuid, ${fields} as fields, host(r.address) as address, r.record,
  ${milliseconds('r.created_at')} as created_ms, ${milliseconds('r.updated_at')} as updated_ms,
  null::float8 as expires_ms, r.change_xid::text::int8 as change_xid, r.change_position,
  r.deletion_marked_at is not null as deleted, r.applied_position, ${milliseconds('r.applied_at')} as applied_ms,
  r.failure, r.held_position is not distinct from r.change_position as held, r.forward_confirmed`;

export interface ZoneRow {
  readonly uuid: string;
  readonly zone: string;
  readonly driver: ZoneDriver;
  readonly settings: ZoneDriverSettings;
  readonly serial: number;
  readonly checked_at: Date | null;
  readonly trouble: 'away' | 'refused' | null;
  readonly trouble_since: Date | null;
  readonly last_error: string | null;
  readonly last_error_at: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** Of `rdns_zone z`. */
export const zoneColumns = `z.uuid::text as uuid, z.zone, z.driver, z.settings, z.serial, z.checked_at, z.trouble,
  z.trouble_since, z.last_error, z.last_error_at, z.created_at, z.updated_at`;
