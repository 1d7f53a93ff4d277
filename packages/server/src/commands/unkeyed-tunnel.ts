/**
 * GRE tunnels whose packets carry no key: a router tells them apart by the customer's endpoint alone, so that each
 * endpoint has one at most. That is the database's constraint; here it is told beforehand.
 */
import type { Problem } from '@levee/contract/errors.ts';
import type { Executor } from './executor.ts';
import type { Site } from './tunnel-ends.ts';

const takenStatement = {
  name: 'tunnel_unkeyed_taken',
  text: `select from tunnel_end
    where router_uuid = any($1::uuid[]) and unkeyed_endpoint = $2::inet and tunnel_uuid is distinct from $3 limit 1`,
};

/** `endpoint` undefined: the tunnel has a key. `tunnelUuid`: the one that is changed. */
export async function findUnkeyedConflict(
  executor: Executor,
  endpoint: string | undefined,
  sites: readonly Pick<Site, 'router_uuid'>[],
  tunnelUuid?: string,
): Promise<readonly Problem[]> {
  if (endpoint === undefined || sites.length === 0) return [];
  const routers = sites.map((site) => site.router_uuid);
  const taken = await executor.rows(takenStatement, [routers, endpoint, tunnelUuid ?? null]);
  if (taken.length === 0) return [];
  const message = `endpoint: ${endpoint} has a tunnel without key already; a second one needs a key, so leave keyed out`;
  return [{ field: '/endpoint', code: 'endpoint_in_use', message }];
}
