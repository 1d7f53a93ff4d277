/**
 * Reads the users of a provider: all of them, one, or the one that has a name. Those that are marked for deletion are
 * there until their rows go, but have no names any more: another may have them.
 */
import type pg from 'pg';
import { type AccountWithSubnets, accountColumns } from './account-row.ts';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';

export type UserRow = AccountWithSubnets & { readonly sequence: number };

const source: ListSource = {
  name: 'users',
  table: `(select *, uuid as owner_uuid from account where role = 'user')`,
  columns: `r.sequence, ${accountColumns}`,
  join: 'join account a on a.uuid = r.uuid',
  covers: 'exists (select from subnet s where s.account_uuid = r.uuid and s.subnet && $::cidr)',
};

export function userChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly UserRow[]> {
  return chunksOf<UserRow>(pool, source, scope);
}

export interface UserNames {
  readonly username: string | undefined;
  readonly email: string | undefined;
  /** Canonical. */
  readonly dst: string | undefined;
  /** Created after the account with this sequence. */
  readonly after: number;
}

const findStatement = {
  name: 'users_find',
  text: `select a.sequence, ${accountColumns} from account a
    where a.provider_uuid = $1 and a.role = 'user' and a.deletion_marked_at is null
      and ($2::text is null or a.username = $2) and ($3::text is null or lower(a.email) = lower($3))
      and ($4::cidr is null or exists (select from subnet s where s.account_uuid = a.uuid and s.subnet && $4::cidr))
      and a.sequence > $5
    order by a.sequence`,
};

/** One at most: names are unique among those that are not marked for deletion. */
export function findUsers(executor: Executor, providerUuid: string, names: UserNames): Promise<UserRow[]> {
  const { username, email, dst, after } = names;
  return executor.rows<UserRow>(findStatement, [providerUuid, username ?? null, email ?? null, dst ?? null, after]);
}

const readStatement = {
  name: 'user_read',
  text: `select ${accountColumns} from account a where a.uuid = $1 and a.provider_uuid = $2 and a.role = 'user'`,
};

/** Undefined: the provider has none. `uuid` is well-formed. */
export async function readUser(
  executor: Executor,
  providerUuid: string,
  uuid: string,
): Promise<AccountWithSubnets | undefined> {
  const [user] = await executor.rows<AccountWithSubnets>(readStatement, [uuid, providerUuid]);
  return user;
}
