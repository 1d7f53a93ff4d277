/** Reads tunnels: one by its uuid, or the rows and columns of a list. */
import type pg from 'pg';
import type { Executor } from './executor.ts';
import { chunksOf, type ListScope, type ListSource } from './list-objects.ts';
import { endsJoin, type TunnelRow, tunnelColumns } from './tunnel-row.ts';

const readStatement = {
  name: 'tunnel_read',
  text: `select ${tunnelColumns} from tunnel r ${endsJoin} where r.uuid = $1`,
};

/** `uuid` is well-formed. Undefined: there is none. */
export async function readTunnel(executor: Executor, uuid: string): Promise<TunnelRow | undefined> {
  const [row] = await executor.rows<TunnelRow>(readStatement, [uuid]);
  return row;
}

/** A tunnel that is marked for deletion has given its subnets back: what it routed stands in its fields. */
const source: ListSource = {
  name: 'tunnels',
  table: 'tunnel',
  columns: tunnelColumns,
  join: endsJoin,
  covers: `case when r.deletion_marked_at is null
      then exists (select from tunnel_subnet s where s.tunnel_uuid = r.uuid and s.routed && $::cidr)
      else exists (select from json_array_elements_text(r.fields->'ips') i where i::cidr && $::cidr) end`,
};

export function tunnelChunks(pool: Pick<pg.Pool, 'query'>, scope: ListScope): AsyncGenerator<readonly TunnelRow[]> {
  return chunksOf<TunnelRow>(pool, source, scope);
}
