/**
 * Marks a firewall rule for deletion, in one statement. The row itself goes when every router has removed the rule
 * (sweep). Deleting twice changes nothing and is no error; a provider may delete what its users own.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';

const deleteStatement = {
  name: 'rule_delete',
  text: `with target as (
      select uuid, change_xid, change_position from firewall_rule
      where uuid = $1 and (owner_uuid = $2 or provider_uuid = $2)
      for update
    ), marked as (
      update firewall_rule r set deletion_marked_at = date_trunc('milliseconds', now()),
        updated_at = date_trunc('milliseconds', now()), subnet = null,
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      from target where r.uuid = target.uuid and r.deletion_marked_at is null
      returning r.uuid, r.change_xid, r.change_position
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from marked
    )
    select coalesce(marked.change_xid, target.change_xid)::text::int8 as change_xid,
      coalesce(marked.change_position, target.change_position) as change_position
    from target left join marked using (uuid)`,
};

export interface DeletedRule {
  readonly change_xid: number;
  readonly change_position: number;
}

export async function deleteRule(executor: Executor, caller: Caller, uuid: string): Promise<Outcome<DeletedRule>> {
  const [deleted] = await executor.rows<DeletedRule>(deleteStatement, [uuid, caller.accountUuid]);
  return deleted === undefined ? refuse('not_found') : done(deleted);
}
