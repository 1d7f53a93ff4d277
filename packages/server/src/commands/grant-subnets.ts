/**
 * Gives subnets to a user. Finds the provider's prefix that each lies in; refuses those outside. That no two users
 * hold one address is the database's constraint, so that of two grants at once one is refused.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Executor } from './executor.ts';

const outsideStatement = {
  name: 'grant_outside',
  text: `select given.position::int as position from unnest($2::cidr[]) with ordinality given (subnet, position)
    where not exists (select from subnet p where p.account_uuid = $1 and p.subnet >>= given.subnet)
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

/** `subnets`: canonical. The problems name the entries outside the provider's prefixes; none: granted. */
export async function grantSubnets(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  subnets: readonly string[],
): Promise<readonly Problem[]> {
  const outside = await executor.rows<{ position: number }>(outsideStatement, [providerUuid, subnets]);
  if (outside.length > 0) {
    return outside.map(({ position }) => ({
      field: `/ips/${position - 1}`,
      code: 'ip_not_allowed',
      message: `ips.${position - 1}: ${subnets[position - 1]} is not inside one of the provider's prefixes`,
    }));
  }
  await executor.rows(grantStatement, [userUuid, providerUuid, subnets]);
  return [];
}
