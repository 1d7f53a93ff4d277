/**
 * Creates a tunnel: its subnets, and an end on every router in scope, in one transaction. Everything that is wrong is
 * told at once; of two creators of one subnet the second waits for the first and is refused.
 */
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { judgeTunnel } from './judge-tunnel.ts';
import { done, type Outcome } from './outcome.ts';
import { withinQuota } from './quota.ts';
import { readTunnel } from './read-tunnels.ts';
import { giveEnds, takeTurn } from './tunnel-ends.ts';
import type { TunnelRow } from './tunnel-row.ts';
import { saveSubnets } from './tunnel-subnets.ts';

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
  const { ips, endpoint, type } = canonical;
  const from = await takeTurn(executor);
  const question = { canonical, positions: [...ips.keys()], asksLocations: true, movesEndpoint: true };
  const judged = await judgeTunnel(executor, caller, question);
  if (!judged.ok) return judged;
  const { subnets, providerUuid, sites, unkeyedEndpoint } = judged.value;
  const within = await withinQuota(executor, caller, 'tunnels', 1);
  if (!within.ok) return within;
  const fields = JSON.stringify(canonical);
  const owner = caller.accountUuid;
  await executor.rows(insertStatement, [uuid, owner, providerUuid, endpoint, type, fields, expiresAt ?? null]);
  await saveSubnets(executor, uuid, owner, subnets);
  const wanted = sites.map((site) => ({ tunnelUuid: uuid, site, unkeyedEndpoint }));
  const given = await giveEnds(executor, pools, from, wanted);
  if (!given.ok) return given;
  const row = await readTunnel(executor, uuid);
  if (row === undefined) throw new Error('a row just written is gone');
  return done(row);
}
