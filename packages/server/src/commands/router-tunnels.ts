/**
 * What becomes of tunnels when routers come and go, in the transaction in which they do: a new router gets an end of
 * every tunnel that has it in scope, before its agent ever connects; of one that goes the ends go with its row.
 */
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome } from './outcome.ts';
import { giveEnds, takeTurn } from './tunnel-ends.ts';

const lackingStatement = {
  name: 'router_tunnels_lacking',
  text: `select t.uuid::text as tunnel_uuid, host(a.address) as address,
      case when (t.fields->>'keyed')::bool is false then host(t.endpoint) end as unkeyed_endpoint
    from router r join location l on l.uuid = r.location_uuid
    cross join lateral unnest(r.tunnel_addresses) a (address)
    join tunnel t on family(t.endpoint) = family(a.address) and t.deletion_marked_at is null
      and (t.fields->'locations' is null or exists (
        select from json_array_elements_text(t.fields->'locations') n where n = l.name
      ))
    where r.uuid = $1 order by t.sequence`,
};

interface LackingRow {
  readonly tunnel_uuid: string;
  readonly address: string;
  readonly unkeyed_endpoint: string | null;
}

/** The tunnels' places in the log stay: no router that has them has anything to do. */
const logStatement = {
  name: 'router_tunnels_log',
  text: `insert into change (position, kind, object_uuid)
    select nextval('change_position'), 'tunnel', u from unnest($1::uuid[]) u`,
};

/** After the router's row was written. */
export async function welcomeRouter(
  executor: Executor,
  pools: InnerPools,
  routerUuid: string,
): Promise<Outcome<undefined>> {
  const from = await takeTurn(executor);
  const lacking = await executor.rows<LackingRow>(lackingStatement, [routerUuid]);
  if (lacking.length === 0) return done(undefined);
  const wanted = withoutDoubles(lacking).map(({ tunnel_uuid, address, unkeyed_endpoint }) => ({
    tunnelUuid: tunnel_uuid,
    site: { router_uuid: routerUuid, address },
    unkeyedEndpoint: unkeyed_endpoint ?? undefined,
  }));
  const given = await giveEnds(executor, pools, from, wanted);
  if (!given.ok) return given;
  await executor.rows(logStatement, [wanted.map((end) => end.tunnelUuid)]);
  return done(undefined);
}

/** Of tunnels without key to one endpoint the router can have the oldest alone: it could not tell them apart. */
function withoutDoubles(lacking: readonly LackingRow[]): readonly LackingRow[] {
  const seen = new Set<string>();
  return lacking.filter(({ unkeyed_endpoint }) => {
    if (unkeyed_endpoint === null) return true;
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
