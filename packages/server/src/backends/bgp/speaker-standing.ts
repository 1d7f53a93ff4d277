/** What is stored of the speaker as a whole, for whoever derives states of it or shows it to the operator. Owns no decision. */
import type pg from 'pg';
import type { SpeakerPeer } from './port.ts';

export interface SpeakerStanding {
  readonly name: string;
  readonly address: string;
  readonly version: string | undefined;
  /** Undefined: all is well. */
  readonly trouble: string | undefined;
  readonly peers: readonly SpeakerPeer[] | undefined;
  readonly flowRoutes: number;
  readonly blackholeRoutes: number;
  readonly foreignRoutes: number;
}

/**
 * When a trouble begins or ends, and when it is another speaker, every flowrule that is to be announced gets its entry: its
 * state is another.
 */
export async function saveStanding(pool: Pick<pg.Pool, 'query'>, standing: SpeakerStanding): Promise<void> {
  const { name, address, version, trouble, peers, flowRoutes, blackholeRoutes, foreignRoutes } = standing;
  await pool.query({
    name: 'bgp_standing',
    text: `with old as (select name, address, trouble from bgp_speaker), saved as (
        insert into bgp_speaker (name, address, version, trouble, peers, flow_routes, blackhole_routes, foreign_routes,
          since, checked_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, date_trunc('milliseconds', clock_timestamp()),
          date_trunc('milliseconds', clock_timestamp()))
        on conflict (singleton) do update set name = $1, address = $2, version = $3, trouble = $4, peers = $5,
          flow_routes = $6, blackhole_routes = $7, foreign_routes = $8, checked_at = excluded.checked_at,
          since = case when bgp_speaker.name = $1 and bgp_speaker.address = $2
            and (bgp_speaker.trouble is null) = ($4::text is null) then bgp_speaker.since else excluded.since end
        returning 1
      )
      insert into change (kind, object_uuid)
      select 'flowrule', r.uuid from flowrule r, saved
      where r.deletion_marked_at is null and r.held is null
        and exists (select from old where (old.trouble is null) <> ($4::text is null))`,
    values: [
      name,
      address,
      version ?? null,
      trouble ?? null,
      peers === undefined ? null : JSON.stringify(peers),
      flowRoutes,
      blackholeRoutes,
      foreignRoutes,
    ],
  });
}
