/**
 * Points an address' PTR record at another name. Whoever may have a record there may change the one that is: it becomes
 * the caller's when its owner has given the address away since, if the caller's quota has room for it.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { findPlace, notAllowed } from './own-space.ts';
import { withinQuota } from './quota.ts';
import { type RdnsRow, rdnsColumns } from './rdns-row.ts';

const lockStatement = {
  name: 'rdns_lock',
  text: `select ${rdnsColumns} from rdns_record r where r.address = $1 and r.deletion_marked_at is null for update`,
};

/** What was known of the former name is forgotten with it. */
const updateStatement = {
  name: 'rdns_update',
  text: `with changed as (
      update rdns_record set record = $2, owner_uuid = $3, provider_uuid = $4, subnet = $5, failure = null,
        forward_confirmed = null, forward_due_at = null,
        updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from changed
    )
    select ${rdnsColumns} from changed r`,
};

export interface UpdatedRdns {
  readonly before: RdnsRow;
  readonly row: RdnsRow;
}

/** In a transaction. `address` is canonical. */
export async function updateRdns(
  executor: Executor,
  caller: Caller,
  address: string,
  record: string,
): Promise<Outcome<UpdatedRdns>> {
  const place = await findPlace(executor, caller, address);
  if (place === undefined) return refuse('ip_not_allowed', notAllowed('/ips', address, caller));
  const [before] = await executor.rows<RdnsRow>(lockStatement, [address]);
  if (before === undefined) return refuse('not_found', noRecord(address));
  const room = await roomFor(executor, caller, before);
  if (!room.ok) return room;
  const values = [before.uuid, record, caller.accountUuid, place.provider_uuid, place.subnet];
  const [row] = await executor.rows<RdnsRow>(updateStatement, values);
  if (row === undefined) throw new Error('a locked row is gone');
  return done({ before, row });
}

/** For what the caller did not hold before. What a provider holds in all is the same when one of its users takes over. */
async function roomFor(executor: Executor, caller: Caller, before: RdnsRow): Promise<Outcome<undefined>> {
  const { accountUuid, providerUuid } = caller;
  if (before.owner_uuid === accountUuid) return done(undefined);
  const isHeld = before.provider_uuid === providerUuid;
  if (isHeld && caller.role === 'provider') return done(undefined);
  return withinQuota(executor, { accountUuid, providerUuid: isHeld ? null : providerUuid }, 'rdns', 1);
}

export function noRecord(address: string) {
  const message = `ips: ${address} has no rDNS record; POST creates one`;
  return { field: '/ips', code: 'not_found', message };
}
