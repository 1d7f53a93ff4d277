/**
 * Whether a tunnel's own packets would come back into it, by way of tunnels that go into one another. Going into another
 * tunnel is no fault. That there is no circle is the database's constraint; here it is told beforehand. Must never name a
 * tunnel, or an address of one, to whom it is neither owned nor provided for.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';

/** As the function `tunnel_chain` ends. */
const deepest = 64;

const chainStatement = {
  name: 'tunnel_circle_judge',
  text: `select o.uuid::text as uuid, c.routed::text as routed, host(c.endpoint) as endpoint,
      $3 in (o.owner_uuid, o.provider_uuid) as readable, coalesce(met.position, 0) as position
    from tunnel_chain($1::inet, $2) c join tunnel o on o.uuid = c.tunnel_uuid
    left join lateral (
      select given.position from unnest($4::cidr[]) with ordinality given (routed, position)
      where given.routed >>= c.endpoint limit 1
    ) met on true
    order by c.depth`,
};

interface ChainRow {
  readonly uuid: string;
  /** What takes the packets in. */
  readonly routed: string;
  readonly endpoint: string;
  readonly readable: boolean;
  /** Of the entry of `ips` that the tunnel ends in, from 1; 0: it ends in none. */
  readonly position: number;
}

export interface CircleQuestion {
  readonly endpoint: string;
  /** By their places in the request's list; null: at fault otherwise. */
  readonly ips: readonly (string | null)[];
  /** The endpoint is what is wrong where it is new, and else `ips`. */
  readonly movesEndpoint: boolean;
  /** The one that is changed. */
  readonly tunnelUuid: string | undefined;
}

/** After `takeTurn`, and after the subnets that the tunnel lets go of are gone. */
export async function judgeCircle(
  executor: Executor,
  { accountUuid }: Caller,
  { endpoint, ips, movesEndpoint, tunnelUuid }: CircleQuestion,
): Promise<readonly Problem[]> {
  const values = [endpoint, tunnelUuid ?? null, accountUuid, ips];
  const chain = await executor.rows<ChainRow>(chainStatement, values);
  const [first] = chain;
  if (first === undefined) return [];
  const into = first.readable
    ? `${endpoint} lies inside ${first.routed}, which ${first.uuid} routes`
    : `${endpoint} is routed into somebody else's tunnel`;
  const last = chain.find((row) => row.position > 0);
  if (last === undefined) return chain.length < deepest ? [] : [tooDeep(into)];
  const index = last.position - 1;
  const at = `ips.${index}`;
  const back = last.readable
    ? `${ips[index]} holds ${last.endpoint}, the endpoint of ${last.uuid}`
    : `${ips[index]} holds the endpoint of somebody else's tunnel`;
  const why = "this tunnel's own packets would come back into it";
  const remedy = 'leave that address out of ips, or give this tunnel an endpoint from which nothing leads back';
  return [
    movesEndpoint
      ? {
          field: '/endpoint',
          code: 'tunnel_circle',
          message: `endpoint: ${into}, and ${at}, ${back}: ${why}; ${remedy}`,
        }
      : { field: `/ips/${index}`, code: 'tunnel_circle', message: `${at}: ${back}, and ${into}: ${why}; ${remedy}` },
  ];
}

function tooDeep(into: string): Problem {
  const message =
    `endpoint: ${into}, from where it goes on through ${deepest} tunnels: nothing is left of a packet then; it must be an ` +
    'address that fewer tunnels lead to';
  return { field: '/endpoint', code: 'tunnels_too_deep', message };
}
