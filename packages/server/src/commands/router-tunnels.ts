/**
 * What becomes of tunnels when routers come, change and go, in the transaction in which they do: a new router gets an end
 * of every tunnel that has it in scope, before its agent ever connects; where one moves or gets other addresses, its
 * ends follow; of one that goes the ends go with its row.
 */
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import type { RouterRow } from '../store/routers.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome } from './outcome.ts';
import { giveEnds, standEnds, takeTurn, type WantedEnd } from './tunnel-ends.ts';

/** Live tunnels that have the router in scope or had it; those that stand there come first. */
const scopeStatement = {
  name: 'router_tunnels_scope',
  text: `select t.uuid::text as tunnel_uuid, host(a.address) as address,
      case when (t.fields->>'keyed')::bool is false then host(t.endpoint) end as unkeyed_endpoint,
      case when not e.retired then host(e.local_endpoint) end as standing_at
    from tunnel t
    join router r on r.uuid = $1
    join location l on l.uuid = r.location_uuid
    left join router_address a on a.router_uuid = r.uuid and a.family = family(t.endpoint)
      and (t.fields->'locations' is null or exists (
        select from json_array_elements_text(t.fields->'locations') n where n = l.name
      ))
    left join tunnel_end e on e.tunnel_uuid = t.uuid and e.router_uuid = r.uuid
    where t.deletion_marked_at is null and (a.address is not null or not e.retired)
    order by coalesce(e.retired, true), t.sequence`,
};

interface ScopeRow {
  readonly tunnel_uuid: string;
  /** Where the end shall be; null: the tunnel has the router in scope no more. */
  readonly address: string | null;
  readonly unkeyed_endpoint: string | null;
  /** Where it is; null: it has none there, or a retired one. */
  readonly standing_at: string | null;
}

const retireStatement = {
  name: 'router_tunnels_retire',
  text: `update tunnel_end set retired = true, unkeyed_endpoint = null
    where router_uuid = $1 and tunnel_uuid = any($2::uuid[])`,
};

/** The tunnels' places in the log stay: no router that has them has anything to do. */
const logStatement = {
  name: 'router_tunnels_log',
  text: `insert into change (position, kind, object_uuid)
    select nextval('change_position'), 'tunnel', u from unnest($1::uuid[]) u`,
};

/** The router may have acknowledged their old places already. */
const moveStatement = {
  name: 'router_tunnels_move',
  text: `with moved as (
      update tunnel set updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = any($1::uuid[]) and deletion_marked_at is null returning uuid, change_position
    )
    insert into change (position, kind, object_uuid) select change_position, 'tunnel', uuid from moved`,
};

/** After the router's row was written. `from`: what `takeTurn` said in this transaction. */
export async function alignEnds(
  executor: Executor,
  pools: InnerPools,
  from: number,
  router: Pick<RouterRow, 'uuid' | 'enrolled'>,
): Promise<Outcome<undefined>> {
  const rows = await executor.rows<ScopeRow>(scopeStatement, [router.uuid]);
  const left = rows.filter((row) => row.address === null).map((row) => row.tunnel_uuid);
  const wanted = withoutDoubles(rows).flatMap(
    ({ tunnel_uuid, address, unkeyed_endpoint, standing_at }): WantedEnd[] => {
      if (address === null || address === standing_at) return [];
      const site = { router_uuid: router.uuid, address };
      return [{ tunnelUuid: tunnel_uuid, site, unkeyedEndpoint: unkeyed_endpoint ?? undefined }];
    },
  );
  const touched = [...left, ...wanted.map((end) => end.tunnelUuid)];
  if (touched.length === 0) return done(undefined);
  await executor.rows(retireStatement, [router.uuid, left]);
  const given = await giveEnds(executor, pools, from, await standEnds(executor, wanted));
  if (!given.ok) return given;
  await executor.rows(router.enrolled ? moveStatement : logStatement, [touched]);
  return done(undefined);
}

/** Of tunnels without key to one endpoint the router can have one alone: it could not tell them apart. */
function withoutDoubles(rows: readonly ScopeRow[]): readonly ScopeRow[] {
  const seen = new Set<string>();
  return rows.filter(({ address, unkeyed_endpoint }) => {
    if (address === null || unkeyed_endpoint === null) return true;
    const first = !seen.has(unkeyed_endpoint);
    seen.add(unkeyed_endpoint);
    return first;
  });
}

const leavingStatement = {
  name: 'router_tunnels_leaving',
  text: `insert into change (position, kind, object_uuid)
    select nextval('change_position'), 'tunnel', e.tunnel_uuid from tunnel_end e where e.router_uuid = $1 and not e.retired`,
};

/** Before the router's row goes. */
export async function dismissRouter(executor: Executor, routerUuid: string): Promise<void> {
  await takeTurn(executor);
  await executor.rows(leavingStatement, [routerUuid]);
}
