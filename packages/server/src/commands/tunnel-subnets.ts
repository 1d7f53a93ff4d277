/**
 * The subnets that a tunnel routes: whether the caller may have them routed, and their rows. That no subnet is in two
 * tunnels is the database's constraint; here it is told beforehand which entry of the request is at fault.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { notAllowed } from './own-space.ts';

/** $4: the tunnel that is changed, whose own subnets are no obstacle. */
const judgeStatement = {
  name: 'tunnel_subnets_judge',
  text: `select place.subnet::text as subnet, place.provider_uuid::text as provider_uuid,
      coalesce(other.own, '{}') as own_tunnels, coalesce(other.of_provider, false) as of_provider,
      (select host(min(a.address)) from router_address a where a.address <<= given.routed) as router_address
    from unnest($2::cidr[]) with ordinality given (routed, position)
    left join lateral (
      select s.subnet, s.provider_uuid from subnet s
      where s.account_uuid = $1 and s.subnet >>= given.routed
        and not ($3 and exists (select from subnet u where u.role = 'user' and u.subnet && given.routed))
      limit 1
    ) place on true
    left join lateral (
      select array_agg(o.uuid::text order by o.sequence) filter (where o.owner_uuid = $1) as own,
        bool_or(o.owner_uuid <> $1) as of_provider
      from tunnel_subnet t join tunnel o on o.uuid = t.tunnel_uuid
      where t.routed && given.routed and t.tunnel_uuid is distinct from $4
    ) other on true
    order by given.position`,
};

interface JudgedRow {
  readonly subnet: string | null;
  readonly provider_uuid: string | null;
  readonly own_tunnels: readonly string[];
  /** Another's than the caller's: on a user's addresses nobody but its provider can have one. */
  readonly of_provider: boolean;
  readonly router_address: string | null;
}

export interface RoutedSubnet {
  readonly routed: string;
  /** The grant that covers it. */
  readonly subnet: string;
}

export interface JudgedSubnets {
  readonly subnets: readonly RoutedSubnet[];
  readonly providerUuid: string | undefined;
  /** Outside the caller's own. */
  readonly notAllowed: readonly Problem[];
  /** In another tunnel, or a router's own. */
  readonly taken: readonly Problem[];
}

/** `ips`: canonical; `positions`: where they stand in the request's list. */
export async function judgeSubnets(
  executor: Executor,
  caller: Caller,
  ips: readonly string[],
  positions: readonly number[],
  tunnelUuid?: string,
): Promise<JudgedSubnets> {
  const values = [caller.accountUuid, ips, caller.role === 'provider', tunnelUuid ?? null];
  const rows = ips.length === 0 ? [] : await executor.rows<JudgedRow>(judgeStatement, values);
  const subnets: RoutedSubnet[] = [];
  const outside: Problem[] = [];
  const taken: Problem[] = [];
  let providerUuid: string | undefined;
  for (const [index, row] of rows.entries()) {
    const { subnet, provider_uuid, own_tunnels, of_provider, router_address } = row;
    const routed = ips[index] ?? '';
    const field = `/ips/${positions[index]}`;
    if (subnet === null || provider_uuid === null) {
      outside.push(notAllowed(field, routed, caller));
    } else if (own_tunnels.length > 0 || of_provider) {
      const message = `ips.${positions[index]}: ${routed} ${routedBy(own_tunnels, of_provider)}`;
      taken.push({ field, code: 'subnet_already_routed', message });
    } else if (router_address !== null) {
      const message =
        `ips.${positions[index]}: ${routed} holds ${router_address}, at which a router ends tunnels: their own packets ` +
        'would go into this one; leave that address out';
      taken.push({ field, code: 'router_address', message });
    } else {
      subnets.push({ routed, subnet });
      providerUuid = provider_uuid;
    }
  }
  return { subnets, providerUuid, notAllowed: outside, taken };
}

/** Tunnels in a sentence. */
const NAMED_AT_MOST = 3;

/** By whom, and who can do something about it. */
function routedBy(own: readonly string[], ofProvider: boolean): string {
  const named = own.slice(0, NAMED_AT_MOST).join(', ');
  const more = own.length > NAMED_AT_MOST ? ` and ${own.length - NAMED_AT_MOST} more` : '';
  const overlaps = [
    ...(own.length > 0 ? [`overlaps what ${named}${more} routes already: delete or change that tunnel first`] : []),
    ...(ofProvider
      ? ["overlaps what a tunnel of the provider's own routes already: the provider must delete or change that one"]
      : []),
  ];
  return overlaps.join('; it also ');
}

/** Ordered, so that requests at the same time meet in the index in one order. */
const insertStatement = {
  name: 'tunnel_subnets_insert',
  text: `insert into tunnel_subnet (tunnel_uuid, owner_uuid, routed, subnet)
    select $1, $2, given.routed, given.subnet from unnest($3::cidr[], $4::cidr[]) given (routed, subnet)
    order by given.routed`,
};

export async function saveSubnets(
  executor: Executor,
  tunnelUuid: string,
  ownerUuid: string,
  subnets: readonly RoutedSubnet[],
): Promise<void> {
  if (subnets.length === 0) return;
  const routed = subnets.map((each) => each.routed);
  const within = subnets.map((each) => each.subnet);
  await executor.rows(insertStatement, [tunnelUuid, ownerUuid, routed, within]);
}

const keepStatement = {
  name: 'tunnel_subnets_keep',
  text: 'delete from tunnel_subnet where tunnel_uuid = $1 and routed <> all($2::cidr[])',
};

const presentStatement = {
  name: 'tunnel_subnets_present',
  text: `select case when masklen(routed) = case family(routed) when 4 then 32 else 128 end
      then host(routed) else routed::text end as routed
    from tunnel_subnet where tunnel_uuid = $1`,
};

/** Lets go of all of the tunnel's subnets but these (canonical). Returns those that it has left. */
export async function keepSubnets(
  executor: Executor,
  tunnelUuid: string,
  ips: readonly string[],
): Promise<ReadonlySet<string>> {
  await executor.rows(keepStatement, [tunnelUuid, ips]);
  const rows = await executor.rows<{ routed: string }>(presentStatement, [tunnelUuid]);
  return new Set(rows.map((row) => row.routed));
}
