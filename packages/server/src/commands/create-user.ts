/** Creates a user of a provider, with its subnets. The password arrives hashed. */
import type { AccountWithSubnets } from './account-row.ts';
import type { Executor } from './executor.ts';
import { grantSubnets } from './grant-subnets.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';

export interface NewUser {
  readonly uuid: string;
  readonly providerUuid: string;
  readonly username: string;
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string;
  /** Canonical, without overlaps among themselves. */
  readonly subnets: readonly string[];
}

const createStatement = {
  name: 'user_create',
  text: `insert into account (uuid, role, provider_uuid, name, username, email, password_hash, created_at, updated_at)
    values ($1, 'user', $2, $3, $4, $5, $6, date_trunc('milliseconds', now()), date_trunc('milliseconds', now()))`,
};

export async function createUser(executor: Executor, user: NewUser): Promise<Outcome<AccountWithSubnets>> {
  await executor.rows(createStatement, [
    user.uuid,
    user.providerUuid,
    user.name,
    user.username,
    user.email,
    user.passwordHash,
  ]);
  const problems = await grantSubnets(executor, user.providerUuid, user.uuid, user.subnets);
  if (problems.length > 0) return refuse('ip_not_allowed', ...problems);
  const account = await loadAccount(executor, user.uuid);
  if (account === undefined) throw new Error('a row just written is gone');
  return done(account);
}
