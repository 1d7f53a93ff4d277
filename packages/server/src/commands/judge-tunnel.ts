/**
 * Whether a tunnel may be as its canonical fields say, as against all that is stored: whose its subnets are, what others
 * route, where routers are. For a new tunnel and for one that is changed; everything that is wrong is told at once.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { parseAddress } from '@levee/core/net/address.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuseFirst } from './outcome.ts';
import { judgeCircle } from './tunnel-circles.ts';
import { judgeLocations, loadSites, type Site } from './tunnel-ends.ts';
import { judgeSubnets, type RoutedSubnet } from './tunnel-subnets.ts';
import { findUnkeyedConflict } from './unkeyed-tunnel.ts';

export interface TunnelQuestion {
  readonly canonical: CanonicalTunnel;
  /** Which of `ips` are new, by their places. */
  readonly positions: readonly number[];
  /** Whether routers at the locations are asked for now; those of an unchanged tunnel may have lost theirs. */
  readonly asksLocations: boolean;
  readonly movesEndpoint: boolean;
  /** The one that is changed. */
  readonly tunnelUuid?: string;
}

export interface TunnelPlace {
  /** Of the new ones. */
  readonly subnets: readonly RoutedSubnet[];
  /** Undefined where none is new. */
  readonly providerUuid: string | undefined;
  readonly sites: readonly Site[];
  /** The endpoint, where packets carry no key. */
  readonly unkeyedEndpoint: string | undefined;
}

/** After `takeTurn`. */
export async function judgeTunnel(
  executor: Executor,
  caller: Caller,
  { canonical, positions, asksLocations, movesEndpoint, tunnelUuid }: TunnelQuestion,
): Promise<Outcome<TunnelPlace>> {
  const { ips, endpoint, keyed, locations } = canonical;
  const family = familyOf(endpoint);
  const sites = await loadSites(executor, family, locations);
  const asked = asksLocations ? (locations ?? []) : [];
  const { unknown, unserved } = await judgeLocations(executor, asked, sites, family, canonical.type);
  const added = positions.map((index) => ips[index] ?? '');
  const judged = await judgeSubnets(executor, caller, added, positions, tunnelUuid);
  const unkeyedEndpoint = keyed === false ? endpoint : undefined;
  const sound = new Set(judged.subnets.map(({ routed }) => routed));
  const routed = ips.map((each, index) => (positions.includes(index) && !sound.has(each) ? null : each));
  const circle = { endpoint, ips: routed, movesEndpoint, tunnelUuid };
  const refused = refuseFirst(
    ['validation_failed', unknown],
    ['ip_not_allowed', judged.notAllowed],
    [
      'conflict',
      [
        ...judged.taken,
        ...unserved,
        ...(await judgeEndpoint(executor, endpoint)),
        ...(movesEndpoint || positions.length > 0 ? await judgeCircle(executor, caller, circle) : []),
        ...(await findUnkeyedConflict(executor, unkeyedEndpoint, sites, tunnelUuid)),
      ],
    ],
  );
  return refused ?? done({ subnets: judged.subnets, providerUuid: judged.providerUuid, sites, unkeyedEndpoint });
}

const routerStatement = {
  name: 'tunnel_endpoint_router',
  text: 'select r.name from router_address a join router r on r.uuid = a.router_uuid where a.address = $1::inet',
};

async function judgeEndpoint(executor: Executor, endpoint: string): Promise<readonly Problem[]> {
  const [router] = await executor.rows<{ name: string }>(routerStatement, [endpoint]);
  if (router === undefined) return [];
  const message =
    `endpoint: ${endpoint} is where the router ${router.name} ends tunnels; it must be an address of the customer's ` +
    'equipment';
  return [{ field: '/endpoint', code: 'router_address', message }];
}

/** `address`: canonical. */
export function familyOf(address: string): Family {
  const read = parseAddress(address);
  if (!read.ok) throw new Error(`not an address: ${read.sentence}`);
  return read.address.family;
}
