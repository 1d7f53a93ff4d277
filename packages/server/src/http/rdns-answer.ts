/** Renders PTR records and reverse zones. States come from core; a zone's secrets stay here. */

import { parseAddress } from '@levee/core/net/address.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { prefixesOfRange } from '@levee/core/net/range.ts';
import { delegationOf, nameserversOf } from '@levee/core/rdns/nested-zones.ts';
import { type RecordState, recordState, type ZoneFacts } from '@levee/core/rdns/record-state.ts';
import type { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import { formatHostPort, type ZoneDriverSettings } from '@levee/core/rdns/zone-settings.ts';
import type { RdnsRow, ZoneRow } from '../commands/rdns-row.ts';
import type { CountedZone } from '../commands/rdns-zone.ts';
import type { KnownZone } from '../commands/read-rdns.ts';
import { type RenderedObject, renderStored, timeText } from './object-answer.ts';

export function renderRdns(row: RdnsRow, zones: ZoneIndex<KnownZone>, message?: string): RenderedObject {
  const zone = zoneOf(row, zones)?.row;
  const derived = stateOf(row, zone);
  const applied = zone === undefined ? [] : [appliedAt(row, zone, derived)];
  let more = row.forward_confirmed === null || row.deleted ? '' : `,"forward_confirmed":${row.forward_confirmed}`;
  if (message !== undefined) more += `,"message":${JSON.stringify(message)}`;
  return renderStored(row, { ...derived, applied }, more);
}

export function zoneOf(row: Pick<RdnsRow, 'address'>, zones: ZoneIndex<KnownZone>): KnownZone | undefined {
  const read = parseAddress(row.address);
  return read.ok ? zones.match(read.address) : undefined;
}

/** Of what was asked for; for a deleted record: whether it is gone from the server. */
export function stateOf(row: RdnsRow, zone: ZoneRow | undefined): RecordState {
  return recordState(
    {
      ips: row.address,
      changePosition: row.change_position,
      appliedPosition: row.applied_position,
      failure: row.failure,
      held: row.held,
      deleted: row.deleted,
    },
    zone && factsOf(zone),
  );
}

function factsOf(zone: ZoneRow): ZoneFacts {
  return {
    zone: zone.zone,
    driver: zone.driver,
    tried: zone.checked_at !== null,
    trouble: zone.trouble,
    troubleSince: zone.trouble_since?.toISOString() ?? null,
    lastError: zone.last_error,
  };
}

function appliedAt(row: RdnsRow, zone: ZoneRow, { state, reason }: RecordState): object {
  const at = state === 'active' && row.applied_ms !== null ? row.applied_ms : undefined;
  return {
    zone: zone.zone,
    driver: zone.driver,
    state: row.deleted && state === 'active' ? 'removed' : state,
    ...(at !== undefined && { at: timeText(at), latency_ms: Math.max(0, at - row.updated_ms) }),
    ...(reason !== undefined && { reason }),
  };
}

/** What is known of a server that takes copies of an embedded zone from this replica. */
export interface SecondaryStanding {
  readonly address: string;
  readonly port: number;
  readonly acknowledgedSerial: number | undefined;
  readonly transferredSerial: number | undefined;
  readonly unanswered: number;
  readonly problem: string | undefined;
}

export interface ZoneSurroundings {
  readonly zones: ZoneIndex<KnownZone>;
  readonly secondaries: (zone: string) => readonly SecondaryStanding[];
}

export function zoneJson({ zone, counts }: CountedZone, around: ZoneSurroundings, message?: string): object {
  const { row } = zone;
  const { last_error, last_error_at } = row;
  const delegation = delegationOf(zone, around.zones);
  const warning = warningOf(zone, around.zones);
  return {
    uuid: row.uuid,
    zone: row.zone,
    driver: row.driver,
    covers: prefixesOfRange(zone.range).map(formatPrefix),
    ...settingsJson(row.settings),
    ...(row.driver === 'embedded' && { serial: row.serial % 2 ** 32 }),
    status: {
      ...(row.checked_at !== null && { reachable: row.trouble === null, checked_at: row.checked_at.toISOString() }),
      ...(row.trouble !== null && { trouble: row.trouble, trouble_since: row.trouble_since?.toISOString() }),
      ...(last_error !== null && { last_error, last_error_at: last_error_at?.toISOString() }),
      records_applied: counts.applied,
      records_pending: counts.pending,
      records_failed: counts.failed,
      ...(row.driver === 'embedded' && { secondaries: around.secondaries(row.zone).map(secondaryJson) }),
    },
    ...(delegation !== undefined && {
      delegation: {
        zone: delegation.zone,
        made_by: delegation.isMade ? 'levee' : 'operator',
        records: delegation.records,
      },
    }),
    ...(warning !== undefined && { warning }),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    ...(message !== undefined && { message }),
  };
}

function secondaryJson({ acknowledgedSerial, transferredSerial, unanswered, problem, ...place }: SecondaryStanding) {
  return {
    secondary: formatHostPort({ host: place.address, port: place.port }),
    ...(acknowledgedSerial !== undefined && { acknowledged_serial: acknowledgedSerial }),
    ...(transferredSerial !== undefined && { transferred_serial: transferredSerial }),
    unanswered,
    ...(problem !== undefined && { problem }),
  };
}

/** What works here and finds nobody out there. */
function warningOf(zone: KnownZone, zones: ZoneIndex<KnownZone>): string | undefined {
  if (nameserversOf(zone, zones) !== undefined) return undefined;
  if (zone.driver === 'embedded') {
    return 'Without nameservers the zone names localhost as its name server, where no resolver finds it: give the host names under which its servers are reached, the primary first.';
  }
  const delegation = delegationOf(zone, zones);
  if (delegation?.isMade !== true) return undefined;
  return `Levee serves ${delegation.zone}, in which this zone lies, and cannot delegate it without nameservers: give the host names of the servers that answer for it.`;
}

/** What is answered and kept in the audit log: that there is a secret, never the secret. */
export function settingsJson(settings: ZoneDriverSettings): object {
  const { tsig, api_key, ...plain } = settings;
  return {
    ...plain,
    ...(tsig !== undefined && { tsig: { name: tsig.name, algorithm: tsig.algorithm } }),
    ...(api_key !== undefined && { api_key_set: true }),
  };
}
