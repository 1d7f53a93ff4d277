/**
 * Changes a tunnel in place. Ends on routers that stay keep what they were given; subnets that stay are not asked about
 * again. Only the owner changes a tunnel.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { parseTunnelChange } from '@levee/core/tunnel/parse-tunnel.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { familyOf, judgeTunnel } from './judge-tunnel.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { mayRead } from './read-rules.ts';
import { readTunnel } from './read-tunnels.ts';
import { type StoredRow, storedColumns } from './stored-row.ts';
import { giveEnds, standEnds, takeTurn } from './tunnel-ends.ts';
import type { TunnelRow } from './tunnel-row.ts';
import { keepSubnets, saveSubnets } from './tunnel-subnets.ts';

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
  const { ips, endpoint, locations } = canonical;
  const kept = await keepSubnets(executor, before.uuid, ips);
  const judged = await judgeTunnel(executor, caller, {
    canonical,
    positions: [...ips.keys()].filter((index) => !kept.has(ips[index] ?? '')),
    asksLocations:
      JSON.stringify(locations) !== JSON.stringify(stored.locations) ||
      familyOf(endpoint) !== familyOf(stored.endpoint),
    movesEndpoint: endpoint !== stored.endpoint,
    tunnelUuid: before.uuid,
  });
  if (!judged.ok) return judged;
  const { subnets, sites, unkeyedEndpoint } = judged.value;
  const routers = sites.map((site) => site.router_uuid);
  await executor.rows(retireStatement, [before.uuid, routers]);
  const wanted = sites.map((site) => ({ tunnelUuid: before.uuid, site, unkeyedEndpoint }));
  if (endpoint !== stored.endpoint) await executor.rows(forgetProbesStatement, [before.uuid]);
  const given = await giveEnds(executor, pools, from, await standEnds(executor, wanted));
  if (!given.ok) return given;
  const expiresAt = change.expiresAt === undefined ? dateOf(before.expires_ms) : change.expiresAt;
  await executor.rows(changeStatement, [before.uuid, endpoint, JSON.stringify(canonical), expiresAt]);
  // Not before: with the endpoint that it had, a circle might be there for a moment.
  await saveSubnets(executor, before.uuid, before.owner_uuid, subnets);
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

/** They were answered, or not, by another customer's end. */
const forgetProbesStatement = { name: 'tunnel_probes_forget', text: 'delete from tunnel_probe where tunnel_uuid = $1' };

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
