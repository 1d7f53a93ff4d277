/**
 * What losing addresses means for tunnels: a tunnel lets go of every subnet that it no longer may route and keeps the
 * others; with none left it is marked for deletion. Part of `withdraw-space.ts`, which holds the locks.
 */
import { type Prefix, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import { markingText } from '../store/stored-kinds.ts';
import { type AuditEntry, objectEntry } from './audit.ts';
import type { Executor } from './executor.ts';
import { type ChangePlace, type StoredRow, storedColumns } from './stored-row.ts';

export interface WithdrawnTunnels {
  readonly removed: number;
  readonly changed: number;
  readonly audit: readonly AuditEntry[];
  readonly places: readonly ChangePlace[];
}

/** In one order everywhere. */
const lockStatement = {
  name: 'withdraw_tunnels_lock',
  text: `select ${storedColumns} from tunnel r
    where r.owner_uuid = $1 and r.deletion_marked_at is null
      and exists (select from tunnel_subnet s where s.tunnel_uuid = r.uuid and s.routed && any($2::cidr[]))
    order by r.sequence for update`,
};

const markStatement = {
  name: 'withdraw_tunnels_mark',
  text: `with ${markingText('tunnel', 'r.uuid = any($1::uuid[])')}
    select m.change_xid::text::int8 as change_xid, m.change_position from marked m`,
};

const changeStatement = {
  name: 'withdraw_tunnels_change',
  text: `with released as (
      delete from tunnel_subnet where tunnel_uuid = any($1::uuid[]) and routed && any($3::cidr[])
    ), changed as (
      update tunnel r set fields = given.fields::json, updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      from unnest($1::uuid[], $2::text[]) given (uuid, fields) where r.uuid = given.uuid
      returning r.*
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'tunnel', uuid from changed
    )
    select ${storedColumns} from changed r`,
};

export async function withdrawTunnels(
  executor: Executor,
  ownerUuid: string,
  taken: readonly Prefix[],
): Promise<WithdrawnTunnels> {
  const texts = taken.map(formatPrefix);
  const rows = await executor.rows<StoredRow>(lockStatement, [ownerUuid, texts]);
  const gone: StoredRow[] = [];
  const kept: { readonly before: StoredRow; readonly fields: string }[] = [];
  for (const before of rows) {
    const canonical = JSON.parse(before.fields) as CanonicalTunnel;
    const ips = canonical.ips.filter((ip) => !taken.some((each) => prefixesOverlap(each, prefixFromTrusted(ip))));
    // A change of the tunnel that was first may have let go of them already.
    if (ips.length === canonical.ips.length) continue;
    if (ips.length === 0) gone.push(before);
    else kept.push({ before, fields: JSON.stringify({ ...canonical, ips }) });
  }
  const marked = await executor.rows<ChangePlace>(markStatement, [gone.map(({ uuid }) => uuid)]);
  const values = [kept.map(({ before }) => before.uuid), kept.map(({ fields }) => fields), texts];
  const changed = await executor.rows<StoredRow>(changeStatement, values);
  const after = new Map(changed.map((row) => [row.uuid, row]));
  return {
    removed: gone.length,
    changed: kept.length,
    audit: [
      ...gone.map((before) => objectEntry('tunnel', before, undefined)),
      ...kept.map(({ before }) => objectEntry('tunnel', before, after.get(before.uuid))),
    ],
    places: [...marked, ...changed],
  };
}
