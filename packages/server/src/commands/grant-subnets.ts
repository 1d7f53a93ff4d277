/**
 * Gives subnets to a user. Finds the provider's prefix that each lies in; refuses those outside. That no two users
 * hold one address is the database's constraint, so that of two grants at once one is refused.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Executor } from './executor.ts';
import { type Failure, refuse } from './outcome.ts';

/** One that the user holds already, exactly so, is no fault. */
const faultsStatement = {
  name: 'grant_faults',
  text: `select given.position::int as position, not inside.it as outside
    from unnest($2::cidr[]) with ordinality given (subnet, position)
    cross join lateral (
      select exists (select from subnet p where p.account_uuid = $1 and p.subnet >>= given.subnet) as it
    ) inside
    where not inside.it or exists (
      select from subnet u where u.role = 'user' and u.subnet && given.subnet
        and not (u.account_uuid = $3 and u.subnet = given.subnet)
    )
    order by given.position`,
};

const grantStatement = {
  name: 'grant_subnets',
  text: `insert into subnet (account_uuid, subnet, role, provider_uuid, provider_subnet)
    select $1, given.subnet, 'user', $2, p.subnet
    from unnest($3::cidr[]) given (subnet)
    left join subnet p on p.account_uuid = $2 and p.subnet >>= given.subnet
    on conflict (account_uuid, subnet) do nothing`,
};

/**
 * Why some of `subnets` (canonical) cannot be the user's: outside the provider's prefixes, or in use. In use by now, that
 * is: of two grants at once the constraint refuses one, and names the first subnet only.
 */
export async function findGrantFaults(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  subnets: readonly string[],
): Promise<readonly Problem[]> {
  const faults = await executor.rows<{ position: number; outside: boolean }>(faultsStatement, [
    providerUuid,
    subnets,
    userUuid,
  ]);
  return faults.map(({ position, outside }) => {
    const name = `ips.${position - 1}: ${subnets[position - 1]}`;
    const message = outside
      ? `${name} is not inside one of the provider's prefixes`
      : `${name} overlaps a subnet that is in use already`;
    return { field: `/ips/${position - 1}`, code: outside ? 'ip_not_allowed' : 'ip_in_use', message };
  });
}

/** The status that the worst of the faults asks for: what is not the provider's is told before what is taken. */
export function refuseGrant(faults: readonly Problem[]): { readonly ok: false; readonly failure: Failure } {
  return refuse(faults.some(({ code }) => code === 'ip_not_allowed') ? 'ip_not_allowed' : 'conflict', ...faults);
}

/** After `findGrantFaults` found none. Throws the violated constraint when a grant at the same time was first. */
export async function grantSubnets(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  subnets: readonly string[],
): Promise<void> {
  await executor.rows(grantStatement, [userUuid, providerUuid, subnets]);
}
