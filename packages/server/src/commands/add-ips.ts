/** Adds subnets to those that a user may act on. One that the user holds already is no error. */
import type { AccountWithSubnets } from './account-row.ts';
import type { Executor } from './executor.ts';
import { findGrantFaults, grantSubnets, refuseGrant } from './grant-subnets.ts';
import { loadAccount, lockUser, touchAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { findProviderObjects, type Overlapped } from './provider-objects.ts';

export interface GrantedIps extends ChangedAccount {
  /** The provider's own on what was given. */
  readonly overlapped: readonly Overlapped[];
}

export interface ChangedAccount {
  readonly before: AccountWithSubnets;
  readonly account: AccountWithSubnets;
}

export async function addIps(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  subnets: readonly string[],
): Promise<Outcome<GrantedIps>> {
  if (!(await lockUser(executor, providerUuid, userUuid))) return refuse('not_found', noSuchUser(userUuid));
  const before = await loadAccount(executor, userUuid);
  const faults = await findGrantFaults(executor, providerUuid, userUuid, subnets);
  if (faults.length > 0) return refuseGrant(faults);
  await grantSubnets(executor, providerUuid, userUuid, subnets);
  await touchAccount(executor, userUuid);
  const account = await loadAccount(executor, userUuid);
  if (before === undefined || account === undefined) throw new Error('a locked account is gone');
  return done({ before, account, overlapped: await findProviderObjects(executor, providerUuid, subnets) });
}

export function noSuchUser(userUuid: string) {
  const message = `user_uuid: the provider has no user ${userUuid}, or it is marked for deletion`;
  return { field: '/user_uuid', code: 'not_found', message };
}
