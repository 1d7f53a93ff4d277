/**
 * Tunnels as routers have them now: a tunnel that is not marked, with the router's own end of it. Read only where a tunnel
 * is among what changed, so that rules and filters never wait for it, and never for more routers than were asked about.
 */
import type pg from 'pg';
import type { Statements } from './change-log.ts';

export interface PresentTunnel {
  readonly uuid: string;
  readonly sequence: number;
  /** JSON text of the canonical wire fields. */
  readonly fields: string;
  /** The router's address outside. */
  readonly local_endpoint: string;
  /** GRE's key or Geneve's VNI. */
  readonly number: number;
  /** A /31 and a /127. */
  readonly inner_ipv4: string;
  readonly inner_ipv6: string;
}

/** By router; one that has none of the tunnels asked about is not in it. */
export type TunnelsOfRouters = ReadonlyMap<string, readonly PresentTunnel[]>;

export const noTunnels: TunnelsOfRouters = new Map();

/** Of a tunnel `t` and an end `e`. */
export const presentTunnelColumns = `t.uuid::text as uuid, t.sequence, t.fields::text as fields,
  host(e.local_endpoint) as local_endpoint, e.number, e.inner_ipv4::text as inner_ipv4, e.inner_ipv6::text as inner_ipv6`;

export const presentTunnelSource = `tunnel_end e join tunnel t on t.uuid = e.tunnel_uuid
  and t.deletion_marked_at is null and not e.retired`;

const READ = `select e.router_uuid::text as router_uuid, ${presentTunnelColumns} from ${presentTunnelSource}
  where e.tunnel_uuid = any($1::uuid[]) and e.router_uuid = any($2::uuid[]) order by t.sequence`;

/** Throws what the driver throws. */
export async function readPresentTunnels(
  db: Statements,
  tunnels: readonly string[],
  routers: readonly string[],
): Promise<TunnelsOfRouters> {
  if (tunnels.length === 0 || routers.length === 0) return noTunnels;
  const { rows } = await (db as pg.ClientBase).query<PresentTunnel & { router_uuid: string }>({
    name: 'present_tunnels',
    text: READ,
    values: [tunnels, routers],
  });
  return Map.groupBy(rows, (row) => row.router_uuid);
}
