/**
 * Creates a tunnel: its subnets, and an end on every router in scope, in one transaction. Everything that is wrong is
 * told at once; of two creators of one subnet the second waits for the first and is refused.
 */
import { parseAddress } from '@levee/core/net/address.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { withinQuota } from './quota.ts';
import { readTunnel } from './read-tunnels.ts';
import { giveEnds, judgeLocations, judgeSites, loadSites, takeTurn } from './tunnel-ends.ts';
import type { TunnelRow } from './tunnel-row.ts';
import { judgeSubnets, saveSubnets } from './tunnel-subnets.ts';
import { findUnkeyedConflict } from './unkeyed-tunnel.ts';

export interface NewTunnel {
  readonly uuid: string;
  readonly canonical: CanonicalTunnel;
  readonly expiresAt: Date | undefined;
}

const insertStatement = {
  name: 'tunnel_insert',
  text: `with drawn as (select nextval('change_position') as position), tunnel as (
      insert into tunnel (uuid, sequence, owner_uuid, provider_uuid, endpoint, type, fields, created_at, updated_at,
        expires_at, change_position)
      select $1, position, $2, $3, $4, $5, $6, date_trunc('milliseconds', now()), date_trunc('milliseconds', now()), $7,
        position
      from drawn returning uuid, change_position
    )
    insert into change (position, kind, object_uuid) select change_position, 'tunnel', uuid from tunnel`,
};

export async function createTunnel(
  executor: Executor,
  caller: Caller,
  pools: InnerPools,
  { uuid, canonical, expiresAt }: NewTunnel,
): Promise<Outcome<TunnelRow>> {
  const { ips, endpoint, type, keyed, locations } = canonical;
  const from = await takeTurn(executor);
  const unknown = await judgeLocations(executor, locations);
  if (unknown.length > 0) return refuse('validation_failed', ...unknown);
  const family = familyOf(endpoint);
  const judged = await judgeSubnets(executor, caller, ips, [...ips.keys()]);
  const sites = await loadSites(executor, family, locations);
  const unserved = judgeSites(locations, sites, family);
  const unkeyedEndpoint = keyed === false ? endpoint : undefined;
  const doubled = await findUnkeyedConflict(executor, unkeyedEndpoint, sites);
  const conflicts = [...judged.taken, ...unserved, ...doubled];
  if (judged.notAllowed.length > 0) return refuse('ip_not_allowed', ...judged.notAllowed, ...conflicts);
  if (conflicts.length > 0) return refuse('conflict', ...conflicts);
  const within = await withinQuota(executor, caller, 'tunnels', 1);
  if (!within.ok) return within;
  const fields = JSON.stringify(canonical);
  const owner = caller.accountUuid;
  await executor.rows(insertStatement, [uuid, owner, judged.providerUuid, endpoint, type, fields, expiresAt ?? null]);
  await saveSubnets(executor, uuid, owner, judged.subnets);
  const wanted = sites.map((site) => ({ tunnelUuid: uuid, site, unkeyedEndpoint }));
  const given = await giveEnds(executor, pools, from, wanted);
  if (!given.ok) return given;
  const row = await readTunnel(executor, uuid);
  if (row === undefined) throw new Error('a row just written is gone');
  return done(row);
}

/** `address`: canonical. */
export function familyOf(address: string): Family {
  const read = parseAddress(address);
  if (!read.ok) throw new Error(`not an address: ${read.sentence}`);
  return read.address.family;
}
