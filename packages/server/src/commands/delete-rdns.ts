/**
 * Marks the PTR record of an address for deletion, in one statement; the row goes when the DNS server has removed the
 * record. A provider may delete the records of its users.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { holds, notAllowed } from './own-space.ts';
import { type RdnsRow, rdnsColumns } from './rdns-row.ts';
import { noRecord } from './update-rdns.ts';

const deleteStatement = {
  name: 'rdns_delete',
  text: `with marked as (
      update rdns_record set deletion_marked_at = date_trunc('milliseconds', now()), subnet = null, failure = null,
        updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where address = $1 and deletion_marked_at is null
      returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from marked
    )
    select ${rdnsColumns} from marked r`,
};

/** `address` is canonical. Gives the marked row. */
export async function deleteRdns(executor: Executor, caller: Caller, address: string): Promise<Outcome<RdnsRow>> {
  if (!(await holds(executor, caller, address))) {
    return refuse('ip_not_allowed', notAllowed('/ips', address, caller));
  }
  const [row] = await executor.rows<RdnsRow>(deleteStatement, [address]);
  return row === undefined ? refuse('not_found', noRecord(address)) : done(row);
}
