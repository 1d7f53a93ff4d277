/**
 * What a router may be called, where it may stand and which addresses may be its own, as against all that is stored.
 * The database's constraints say the same; here it is told beforehand, everything at once, and by name.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { quote } from '@levee/core/problem.ts';
import { findLocation } from '../store/routers.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuseFirst } from './outcome.ts';

export interface RouterFields {
  readonly name?: string | undefined;
  /** Name or uuid. */
  readonly location?: string | undefined;
  /** Canonical, at most one a family. */
  readonly tunnelAddresses?: readonly string[] | undefined;
}

/** After `takeTurn`. `routerUuid`: the one that is changed. Returns the uuid of the location, where one is named. */
export async function judgeRouter(
  executor: Executor,
  { name, location, tunnelAddresses = [] }: RouterFields,
  routerUuid?: string,
): Promise<Outcome<string | undefined>> {
  const locationUuid = location === undefined ? undefined : await findLocation(executor.client, location);
  const missing = location !== undefined && locationUuid === undefined ? [noLocation(location)] : [];
  const taken = name === undefined ? [] : await judgeName(executor, name, routerUuid);
  const addresses = await judgeAddresses(executor, tunnelAddresses, routerUuid);
  const refused = refuseFirst(['not_found', missing], ['conflict', [...taken, ...addresses]]);
  return refused ?? done(locationUuid);
}

const nameStatement = {
  name: 'router_name_judge',
  text: 'select from router where name = $1 and uuid is distinct from $2',
};

async function judgeName(executor: Executor, name: string, routerUuid?: string): Promise<readonly Problem[]> {
  const others = await executor.rows(nameStatement, [name, routerUuid ?? null]);
  if (others.length === 0) return [];
  const message = `name: ${quote(name)} is taken already; it must be one that is not in use`;
  return [{ field: '/name', code: 'already_exists', message }];
}

const addressesStatement = {
  name: 'router_addresses_judge',
  text: `select r.name as router, s.routed::text as routed, coalesce(s.tunnel_uuid, t.uuid)::text as tunnel
    from unnest($1::inet[]) with ordinality given (address, position)
    left join router_address a on a.address = given.address and a.router_uuid is distinct from $2
    left join router r on r.uuid = a.router_uuid
    left join lateral (select * from tunnel_subnet s where s.routed >>= given.address limit 1) s on true
    left join lateral (
      select * from tunnel t where t.endpoint = given.address and t.deletion_marked_at is null limit 1
    ) t on true
    order by given.position`,
};

interface JudgedAddress {
  readonly router: string | null;
  readonly routed: string | null;
  readonly tunnel: string | null;
}

async function judgeAddresses(
  executor: Executor,
  addresses: readonly string[],
  routerUuid?: string,
): Promise<readonly Problem[]> {
  if (addresses.length === 0) return [];
  const rows = await executor.rows<JudgedAddress>(addressesStatement, [addresses, routerUuid ?? null]);
  return rows.flatMap(({ router, routed, tunnel }, index): Problem[] => {
    const field = `/tunnel_addresses/${index}`;
    const at = `tunnel_addresses.${index}: ${addresses[index]}`;
    if (router !== null) {
      const message = `${at} is an address of the router ${router} already; each belongs to one router`;
      return [{ field, code: 'already_exists', message }];
    }
    if (routed !== null) {
      const message = `${at} lies inside ${routed}, which the tunnel ${tunnel} routes: its own packets would go into it`;
      return [{ field, code: 'routed_by_tunnel', message }];
    }
    if (tunnel === null) return [];
    const message = `${at} is the endpoint of the tunnel ${tunnel}: a router cannot be the customer's end`;
    return [{ field, code: 'endpoint_of_tunnel', message }];
  });
}

function noLocation(received: string): Problem {
  const message = `location: there is no location ${quote(received)}; create it first`;
  return { field: '/location', code: 'not_found', message };
}
