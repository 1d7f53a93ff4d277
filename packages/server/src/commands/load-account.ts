/** Loads accounts for commands and answers; to a provider, accounts of other providers do not exist. */
import { type AccountWithSubnets, accountColumns } from './account-row.ts';
import type { Executor } from './executor.ts';

const readStatement = {
  name: 'account_read',
  text: `select ${accountColumns} from account a where a.uuid = $1 and a.deletion_marked_at is null`,
};

export async function loadAccount(executor: Executor, uuid: string): Promise<AccountWithSubnets | undefined> {
  const [account] = await executor.rows<AccountWithSubnets>(readStatement, [uuid]);
  return account;
}

const lockUserStatement = {
  name: 'account_lock_user',
  text: `select uuid from account
    where uuid = $1 and provider_uuid = $2 and role = 'user' and deletion_marked_at is null
    for no key update`,
};

/** Keeps other changes of the user's subnets waiting until this transaction ends. False: no such user. */
export async function lockUser(executor: Executor, providerUuid: string, userUuid: string): Promise<boolean> {
  return (await executor.rows(lockUserStatement, [userUuid, providerUuid])).length > 0;
}

const touchStatement = {
  name: 'account_touch',
  text: `update account set updated_at = date_trunc('milliseconds', now()) where uuid = $1`,
};

export async function touchAccount(executor: Executor, uuid: string): Promise<void> {
  await executor.rows(touchStatement, [uuid]);
}

const providersStatement = {
  name: 'account_providers',
  text: `select ${accountColumns} from account a
    where a.role = 'provider' and a.deletion_marked_at is null order by a.created_at, a.uuid`,
};

export async function loadProviders(executor: Executor): Promise<AccountWithSubnets[]> {
  return executor.rows<AccountWithSubnets>(providersStatement, []);
}
