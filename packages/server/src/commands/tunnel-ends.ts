/**
 * The ends of tunnels: which routers have one, and what each is given. Owns the turn that whoever changes either takes
 * first: it is one row, so that a tunnel made while a router is added meets it, and no number is given twice. It is held
 * for a few statements; decision 0073 says what that costs.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { quote } from '@levee/core/problem.ts';
import {
  allocate,
  capacityOf,
  type EndNumbers,
  endNumbers,
  type InnerPools,
  numberAfter,
  type Stretch,
  stretchesFrom,
} from '@levee/core/tunnel/allocation.ts';
import { kernelModules, type TunnelType } from '@levee/core/tunnel/tunnel.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';

const turnStatement = { name: 'tunnel_turn', text: 'select next_number from tunnel_turn for update' };

/** Waits for others that give ends to tunnels, until this transaction ends. Returns where to look for free numbers. */
export async function takeTurn(executor: Executor): Promise<number> {
  const [turn] = await executor.rows<{ next_number: number }>(turnStatement, []);
  if (turn === undefined) throw new Error('the table tunnel_turn has lost its row');
  return turn.next_number;
}

/** A router that can end tunnels of a family. */
export interface Site {
  readonly router_uuid: string;
  readonly location: string;
  readonly address: string;
  readonly router: string;
  readonly enforcement: 'kernel' | 'dry' | null;
  readonly enforcement_reason: string | null;
  readonly capabilities: readonly string[];
  /** False: its agent has no snapshot yet, and may turn out to be able to. */
  readonly begun: boolean;
}

const sitesStatement = {
  name: 'tunnel_sites',
  text: `select r.uuid::text as router_uuid, l.name as location, host(a.address) as address, r.name as router,
      r.enforcement, r.enforcement_reason, r.capabilities,
      r.acked_xid is not null as begun
    from router r join location l on l.uuid = r.location_uuid join router_address a on a.router_uuid = r.uuid
    where a.family = $1 and ($2::text[] is null or l.name = any($2))
    order by r.created_at, r.uuid`,
};

/** Oldest first. `locations` undefined: everywhere. */
export function loadSites(
  executor: Executor,
  family: Family,
  locations: readonly string[] | undefined,
): Promise<Site[]> {
  return executor.rows<Site>(sitesStatement, [family, locations ?? null]);
}

const locationsStatement = { name: 'tunnel_locations', text: 'select name from location order by name' };
const locationsShown = 20;

export interface JudgedLocations {
  readonly unknown: readonly Problem[];
  /** There is no router at them that ends tunnels of the family, or none that can end those of the type. */
  readonly unserved: readonly Problem[];
}

/** `sites`: those of the family at these locations. */
export async function judgeLocations(
  executor: Executor,
  locations: readonly string[],
  sites: readonly Site[],
  family: Family,
  type: TunnelType,
): Promise<JudgedLocations> {
  if (locations.length === 0) return { unknown: [], unserved: [] };
  const names = (await executor.rows<{ name: string }>(locationsStatement, [])).map((row) => row.name);
  const known = names.slice(0, locationsShown).join(', ') + (names.length > locationsShown ? ' …' : '');
  const there = Map.groupBy(sites, (site) => site.location);
  const unknown: Problem[] = [];
  const unserved: Problem[] = [];
  for (const [index, name] of locations.entries()) {
    const [field, at] = [`/locations/${index}`, `locations.${index}`];
    if (!names.includes(name)) {
      const message = `${at}: there is no location ${quote(name)}; there are: ${known || 'none'}`;
      unknown.push({ field, code: 'unknown_location', message });
      continue;
    }
    const here = there.get(name) ?? [];
    if (here.some((site) => !isUnable(site, type))) continue;
    const why =
      here.length === 0
        ? `no router at ${name} has an IPv${family} tunnel address, which the endpoint asks for`
        : `no router at ${name} can end ${type} tunnels: ${whyUnable(here, type, family)}`;
    unserved.push({ field, code: 'no_tunnel_router', message: `${at}: ${why}` });
  }
  return { unknown, unserved };
}

function isUnable({ begun, capabilities }: Site, type: TunnelType): boolean {
  return begun && !capabilities.includes(`tunnel:${type}`);
}

const routersShown = 5;

function whyUnable(sites: readonly Site[], type: TunnelType, family: Family): string {
  const shown = sites.slice(0, routersShown).map(({ router, enforcement, enforcement_reason: reason }) => {
    if (enforcement === 'dry') return `${router} enforces nothing (${reason ?? 'it did not say why'})`;
    const lacking = kernelModules[type][family];
    return `${router} has reported that it cannot (its kernel lacks ${lacking}, or its agent is too old)`;
  });
  return shown.join('; ') + (sites.length > routersShown ? ` … and ${sites.length - routersShown} more` : '');
}

export interface WantedEnd {
  readonly tunnelUuid: string;
  readonly site: Pick<Site, 'router_uuid' | 'address'>;
  /** The customer's endpoint, where packets carry no key. */
  readonly unkeyedEndpoint: string | undefined;
}

const shortestStretch = 1024;

const takenStatement = {
  name: 'tunnel_numbers_taken',
  text: `select number, inner_ipv4::text, inner_ipv6::text from tunnel_end
    where number between $1 and $2 or inner_ipv4 between $3::cidr and $4::cidr or inner_ipv6 between $5::cidr and $6::cidr`,
};

interface TakenRow {
  readonly number: number;
  readonly inner_ipv4: string;
  readonly inner_ipv6: string;
}

const insertStatement = {
  name: 'tunnel_ends_insert',
  text: `insert into tunnel_end (tunnel_uuid, router_uuid, local_endpoint, number, inner_ipv4, inner_ipv6, unkeyed_endpoint)
    select * from unnest($1::uuid[], $2::uuid[], $3::inet[], $4::int8[], $5::cidr[], $6::cidr[], $7::inet[])`,
};

const standStatement = {
  name: 'tunnel_ends_stand',
  text: `update tunnel_end e set retired = false, local_endpoint = w.address, unkeyed_endpoint = w.unkeyed_endpoint
    from unnest($1::uuid[], $2::uuid[], $3::inet[], $4::inet[]) w (tunnel_uuid, router_uuid, address, unkeyed_endpoint)
    where e.tunnel_uuid = w.tunnel_uuid and e.router_uuid = w.router_uuid
    returning e.tunnel_uuid::text || e.router_uuid as end`,
};

/** Puts the ends that there are where they shall be, with the numbers that they have. Returns those that there are not. */
export async function standEnds(executor: Executor, wanted: readonly WantedEnd[]): Promise<readonly WantedEnd[]> {
  const rows = await executor.rows<{ end: string }>(standStatement, [
    wanted.map((end) => end.tunnelUuid),
    wanted.map((end) => end.site.router_uuid),
    wanted.map((end) => end.site.address),
    wanted.map((end) => end.unkeyedEndpoint ?? null),
  ]);
  const standing = new Set(rows.map((row) => row.end));
  return wanted.filter((end) => !standing.has(end.tunnelUuid + end.site.router_uuid));
}

const nextStatement = { name: 'tunnel_turn_next', text: 'update tunnel_turn set next_number = $1' };

/** Gives each wanted end its numbers. `from`: what `takeTurn` said in this transaction. */
export async function giveEnds(
  executor: Executor,
  pools: InnerPools,
  from: number,
  wanted: readonly WantedEnd[],
): Promise<Outcome<undefined>> {
  if (wanted.length === 0) return done(undefined);
  const numbers = await findFree(executor, pools, from, wanted.length);
  const last = numbers.at(-1);
  if (numbers.length < wanted.length || last === undefined) return refuse('conflict', noNumbersLeft);
  await executor.rows(insertStatement, [
    wanted.map((end) => end.tunnelUuid),
    wanted.map((end) => end.site.router_uuid),
    wanted.map((end) => end.site.address),
    numbers.map((each) => each.number),
    numbers.map((each) => formatPrefix(each.innerIpv4)),
    numbers.map((each) => formatPrefix(each.innerIpv6)),
    wanted.map((end) => end.unkeyedEndpoint ?? null),
  ]);
  await executor.rows(nextStatement, [numberAfter(pools, last.number)]);
  return done(undefined);
}

/** Nearly always one look at a short stretch; where that is full, longer ones up to all there are. */
async function findFree(
  executor: Executor,
  pools: InnerPools,
  from: number,
  count: number,
): Promise<readonly EndNumbers[]> {
  for (let length = Math.max(shortestStretch, 2 * count); ; length *= 16) {
    const stretches = stretchesFrom(pools, from, length);
    const numbers = new Set<number>();
    const pairs = new Set<string>();
    for (const stretch of stretches) {
      for (const row of await executor.rows<TakenRow>(takenStatement, boundsOf(pools, stretch))) {
        numbers.add(row.number);
        pairs.add(row.inner_ipv4).add(row.inner_ipv6);
      }
    }
    const found = allocate(pools, stretches, count, { numbers, pairs });
    if (found.length === count || length >= capacityOf(pools)) return found;
  }
}

function boundsOf(pools: InnerPools, { first, last }: Stretch): unknown[] {
  const [low, high] = [endNumbers(pools, first), endNumbers(pools, last)];
  const pairs = [low.innerIpv4, high.innerIpv4, low.innerIpv6, high.innerIpv6];
  return [first, last, ...pairs.map(formatPrefix)];
}

const noNumbersLeft: Problem = {
  field: '',
  code: 'inner_addresses_exhausted',
  message:
    'Every inner address of the installation is in use; the operator can widen LEVEE_TUNNEL_INNER_IPV4 and LEVEE_TUNNEL_INNER_IPV6.',
};
