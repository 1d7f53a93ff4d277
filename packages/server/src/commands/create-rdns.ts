/**
 * Creates the PTR record of an address, in one statement. A unique index allows one live record an address: of two
 * creators one stores it, the other is told. The foreign key to the owner's subnet decides a race with its removal.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { notAllowed, placeText } from './own-space.ts';
import { withinQuota } from './quota.ts';
import { type RdnsRow, rdnsColumns } from './rdns-row.ts';

export interface NewRdns {
  readonly uuid: string;
  /** Canonical. */
  readonly address: string;
  readonly record: string;
}

const createStatement = {
  name: 'rdns_create',
  text: `with place as (${placeText}), drawn as (
      select place.*, nextval('change_position') as position from place
    ), created as (
      insert into rdns_record (uuid, sequence, owner_uuid, provider_uuid, subnet, address, record, created_at, updated_at,
        change_position)
      select $4, position, $1, provider_uuid, subnet, $2, $5, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), position
      from drawn
      on conflict (address) where deletion_marked_at is null do nothing
      returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from created
    )
    select place.subnet is not null as allowed, ${rdnsColumns} from place left join created r on true`,
};

/** In a transaction. */
export async function createRdns(
  executor: Executor,
  caller: Caller,
  { uuid, address, record }: NewRdns,
): Promise<Outcome<RdnsRow>> {
  const within = await withinQuota(executor, caller, 'rdns', 1);
  const values = [caller.accountUuid, address, caller.role === 'provider', uuid, record];
  const [row] = await executor.rows<RdnsRow | (RdnsRow & { uuid: null })>(createStatement, values);
  if (row === undefined) return refuse('ip_not_allowed', notAllowed('/ips', address, caller));
  if (row.uuid === null) {
    const message = `ips: ${address} has an rDNS record already; PUT changes it, DELETE removes it`;
    return refuse('conflict', { field: '/ips', code: 'already_exists', message });
  }
  return within.ok ? done(row) : within;
}
