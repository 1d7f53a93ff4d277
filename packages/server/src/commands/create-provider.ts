/** Creates a provider with its prefixes. That no two providers overlap is the database's constraint. */
import type { AccountWithSubnets } from './account-row.ts';
import type { Executor } from './executor.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome } from './outcome.ts';

export interface NewProvider {
  readonly uuid: string;
  readonly name: string;
  /** Canonical, without overlaps among themselves. */
  readonly prefixes: readonly string[];
}

const accountStatement = {
  name: 'provider_create',
  text: `insert into account (uuid, role, provider_uuid, name, created_at, updated_at)
    values ($1, 'provider', $1, $2, date_trunc('milliseconds', now()), date_trunc('milliseconds', now()))`,
};

const prefixesStatement = {
  name: 'provider_prefixes',
  text: `insert into subnet (account_uuid, subnet, role, provider_uuid)
    select $1, prefix, 'provider', $1 from unnest($2::cidr[]) prefix`,
};

export async function createProvider(executor: Executor, provider: NewProvider): Promise<Outcome<AccountWithSubnets>> {
  await executor.rows(accountStatement, [provider.uuid, provider.name]);
  await executor.rows(prefixesStatement, [provider.uuid, provider.prefixes]);
  const account = await loadAccount(executor, provider.uuid);
  if (account === undefined) throw new Error('a row just written is gone');
  return done(account);
}
