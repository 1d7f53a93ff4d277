/** Creates a provider with its prefixes. That no two providers overlap is the database's constraint. */
import type { Problem } from '@levee/contract/errors.ts';
import type { AccountWithSubnets } from './account-row.ts';
import type { Executor } from './executor.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';

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

const faultsStatement = {
  name: 'provider_faults',
  text: `select null::int as position where exists (
      select from account where role = 'provider' and name = $1 and deletion_marked_at is null)
    union all
    select given.position::int from unnest($2::cidr[]) with ordinality given (prefix, position)
    where exists (select from subnet p where p.role = 'provider' and p.subnet && given.prefix)
    order by position nulls first`,
};

/** All that is taken, at once (`name` undefined: none is asked for); of two providers created at the same time the constraints refuse one. */
export async function findTaken(
  executor: Executor,
  { name, prefixes }: { readonly name: string | undefined; readonly prefixes: readonly string[] },
): Promise<readonly Problem[]> {
  const faults = await executor.rows<{ position: number | null }>(faultsStatement, [name ?? null, prefixes]);
  return faults.map(({ position }) => {
    if (position === null) return { field: '/name', code: 'already_exists', message: nameTaken };
    const message = `prefixes.${position - 1}: ${prefixes[position - 1]} overlaps a prefix that is in use already`;
    return { field: `/prefixes/${position - 1}`, code: 'ip_in_use', message };
  });
}

const nameTaken = 'name: is taken already; it must be one that is not in use';

/** After `findTaken` found none. Throws the violated constraint when another provider was first. */
export async function savePrefixes(executor: Executor, uuid: string, prefixes: readonly string[]): Promise<void> {
  await executor.rows(prefixesStatement, [uuid, prefixes]);
}

export async function createProvider(executor: Executor, provider: NewProvider): Promise<Outcome<AccountWithSubnets>> {
  const taken = await findTaken(executor, provider);
  if (taken.length > 0) return refuse('conflict', ...taken);
  await executor.rows(accountStatement, [provider.uuid, provider.name]);
  await savePrefixes(executor, provider.uuid, provider.prefixes);
  const account = await loadAccount(executor, provider.uuid);
  if (account === undefined) throw new Error('a row just written is gone');
  return done(account);
}
