/**
 * Changes a tunnel in place. Ends on routers that stay keep what they were given; subnets that stay are not asked about
 * again. Only the owner changes a tunnel.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { parseTunnelChange } from '@levee/core/tunnel/parse-tunnel.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { Caller } from './caller.ts';
import { familyOf } from './create-tunnel.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { mayRead } from './read-rules.ts';
import { readTunnel } from './read-tunnels.ts';
import { type StoredRow, storedColumns } from './stored-row.ts';
import { giveEnds, judgeLocations, judgeSites, loadSites, type Site, takeTurn } from './tunnel-ends.ts';
import type { TunnelRow } from './tunnel-row.ts';
import { judgeSubnets, keepSubnets, saveSubnets } from './tunnel-subnets.ts';
import { findUnkeyedConflict } from './unkeyed-tunnel.ts';

export interface TunnelChange {
  readonly uuid: string;
  /** The wire's fields, of any value; null takes one away. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Undefined: stays. */
  readonly expiresAt: Date | null | undefined;
}

export interface ChangedTunnel {
  readonly before: StoredRow;
  readonly row: TunnelRow;
}

const lockStatement = {
  name: 'tunnel_lock',
  text: `select ${storedColumns} from tunnel r where r.uuid = $1 for update`,
};

const changeStatement = {
  name: 'tunnel_change',
  text: `with changed as (
      update tunnel set endpoint = $2, fields = $3, expires_at = $4,
        updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = $1 returning uuid, change_position
    )
    insert into change (position, kind, object_uuid) select change_position, 'tunnel', uuid from changed`,
};

export async function changeTunnel(
  executor: Executor,
  caller: Caller,
  pools: InnerPools,
  change: TunnelChange,
): Promise<Outcome<ChangedTunnel>> {
  const from = await takeTurn(executor);
  const [before] = await executor.rows<StoredRow>(lockStatement, [change.uuid]);
  if (before === undefined || !mayRead(caller, before)) return refuse('not_found');
  if (before.owner_uuid !== caller.accountUuid) return refuse('ip_not_allowed', notOwner);
  if (before.deleted) return refuse('conflict', markedForDeletion);
  const stored = JSON.parse(before.fields) as CanonicalTunnel;
  const parsed = parseTunnelChange(stored, change.fields);
  if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
  const { canonical } = parsed;
  const { ips, endpoint, keyed } = canonical;
  const family = familyOf(endpoint);
  const locations =
    JSON.stringify(canonical.locations) === JSON.stringify(stored.locations) ? undefined : canonical.locations;
  const unknown = await judgeLocations(executor, locations);
  if (unknown.length > 0) return refuse('validation_failed', ...unknown);

  const kept = await keepSubnets(executor, before.uuid, ips);
  const positions = [...ips.keys()].filter((index) => !kept.has(ips[index] ?? ''));
  const added = positions.map((index) => ips[index] ?? '');
  const judged = await judgeSubnets(executor, caller, added, positions, before.uuid);
  const sites = await loadSites(executor, family, canonical.locations);
  const moved = family !== familyOf(stored.endpoint);
  const unserved = judgeSites(moved ? canonical.locations : locations, sites, family);
  const unkeyedEndpoint = keyed === false ? endpoint : undefined;
  const doubled = await findUnkeyedConflict(executor, unkeyedEndpoint, sites, before.uuid);
  const conflicts: Problem[] = [...judged.taken, ...unserved, ...doubled];
  if (judged.notAllowed.length > 0) return refuse('ip_not_allowed', ...judged.notAllowed, ...conflicts);
  if (conflicts.length > 0) return refuse('conflict', ...conflicts);

  await saveSubnets(executor, before.uuid, before.owner_uuid, judged.subnets);
  const fresh = await moveEnds(executor, before.uuid, sites, unkeyedEndpoint);
  const wanted = fresh.map((site) => ({ tunnelUuid: before.uuid, site, unkeyedEndpoint }));
  const given = await giveEnds(executor, pools, from, wanted);
  if (!given.ok) return given;
  const expiresAt = change.expiresAt === undefined ? dateOf(before.expires_ms) : change.expiresAt;
  await executor.rows(changeStatement, [before.uuid, endpoint, JSON.stringify(canonical), expiresAt]);
  const row = await readTunnel(executor, before.uuid);
  if (row === undefined) throw new Error('a locked row is gone');
  return done({ before, row });
}

/** Ends out of scope keep their numbers, for when they come back, but not their hold on the endpoint. */
const retireStatement = {
  name: 'tunnel_ends_retire',
  text: `update tunnel_end set retired = true, unkeyed_endpoint = null
    where tunnel_uuid = $1 and not retired and router_uuid <> all($2::uuid[])`,
};

const standStatement = {
  name: 'tunnel_ends_stand',
  text: `update tunnel_end e set retired = false, local_endpoint = s.address, unkeyed_endpoint = $4
    from unnest($2::uuid[], $3::inet[]) s (router_uuid, address)
    where e.tunnel_uuid = $1 and e.router_uuid = s.router_uuid
    returning e.router_uuid::text as router_uuid`,
};

/** Puts the tunnel's ends in line with the sites. Returns the sites that have none yet. */
async function moveEnds(
  executor: Executor,
  tunnelUuid: string,
  sites: readonly Site[],
  unkeyedEndpoint: string | undefined,
): Promise<readonly Site[]> {
  const routers = sites.map((site) => site.router_uuid);
  await executor.rows(retireStatement, [tunnelUuid, routers]);
  const addresses = sites.map((site) => site.address);
  const values = [tunnelUuid, routers, addresses, unkeyedEndpoint ?? null];
  const standing = await executor.rows<{ router_uuid: string }>(standStatement, values);
  const have = new Set(standing.map((row) => row.router_uuid));
  return sites.filter((site) => !have.has(site.router_uuid));
}

const notOwner: Problem = {
  field: '',
  code: 'not_owner',
  message: "The tunnel belongs to one of the provider's users: a provider may read and delete it, not change it.",
};

const markedForDeletion: Problem = {
  field: '',
  code: 'marked_for_deletion',
  message: 'The tunnel is marked for deletion and cannot be changed any more; create a new one.',
};

function dateOf(milliseconds: number | null): Date | null {
  return milliseconds === null ? null : new Date(milliseconds);
}
