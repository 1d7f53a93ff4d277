/**
 * Deletes a user of the provider: its names are free, its keys void and its subnets gone at once, with all that this
 * means for its objects. The account's row goes when nothing refers to it any more (sweep); until then deleting it again
 * changes nothing and is no error.
 */
import type { AccountWithSubnets } from './account-row.ts';
import type { AuditEntry } from './audit.ts';
import type { Executor } from './executor.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { lockSpace, type WithdrawnSpace, withdrawSpace } from './withdraw-space.ts';

export interface DeletedUser {
  /** Undefined: it was marked already. */
  readonly before: AccountWithSubnets | undefined;
  readonly withdrawn: WithdrawnSpace | undefined;
  /** Of the keys that are void with it. */
  readonly keys: readonly AuditEntry[];
}

/** Keeps other changes of the account waiting; a key or an object that is being made holds a share of the row. */
const lockStatement = {
  name: 'user_delete_lock',
  text: `select deletion_marked_at is not null as deleted from account
    where uuid = $1 and provider_uuid = $2 and role = 'user' for update`,
};

const markStatement = {
  name: 'user_delete_mark',
  text: `update account set deletion_marked_at = date_trunc('milliseconds', now()),
      updated_at = greatest(updated_at, date_trunc('milliseconds', now()))
    where uuid = $1`,
};

const revokeStatement = {
  name: 'user_delete_keys',
  text: `update api_key set revoked_at = date_trunc('milliseconds', now())
    where account_uuid = $1 and revoked_at is null returning uuid::text, name, revoked_at`,
};

/** In a transaction. `uuid` is well-formed. */
export async function deleteUser(
  executor: Executor,
  providerUuid: string,
  uuid: string,
): Promise<Outcome<DeletedUser>> {
  const [found] = await executor.rows<{ deleted: boolean }>(lockStatement, [uuid, providerUuid]);
  if (found === undefined) return refuse('not_found');
  if (found.deleted) return done({ before: undefined, withdrawn: undefined, keys: [] });
  const before = await loadAccount(executor, uuid);
  if (before === undefined) throw new Error('a locked account is gone');
  const held = await lockSpace(executor, before.uuid);
  const holder = { accountUuid: before.uuid, providerUuid, role: 'user' } as const;
  const taken = held.map(({ prefix }) => prefix);
  const withdrawn = await withdrawSpace(executor, holder, held, taken);
  await executor.rows(markStatement, [before.uuid]);
  const keys = await executor.rows<{ uuid: string; name: string; revoked_at: Date }>(revokeStatement, [before.uuid]);
  return done({
    before,
    withdrawn,
    keys: keys.map(({ uuid: key, name, revoked_at }) => ({
      kind: 'api_key',
      uuid: key,
      ownerUuid: before.uuid,
      providerUuid,
      after: { uuid: key, name, revoked_at: revoked_at.toISOString() },
    })),
  });
}
