/**
 * Adds what routers counted to the objects that it was counted for. A report names them by uuid alone: which of them are
 * rules and which filters the tables say, and what is neither any more is left aside.
 */
import type { ReportStatement } from './reports.ts';

export interface HitDelta {
  readonly uuid: string;
  readonly packets: number;
  readonly bytes: number;
  /** RFC 3339. */
  readonly lastHitAt: string;
  readonly sharedBy: number | undefined;
}

export interface ReportedCounters {
  readonly run: string;
  readonly number: number;
  readonly hits: readonly HitDelta[];
}

/** A number that was taken before, by the same run, is a repetition. */
const COUNTED = `update router r set counters_run = n.run, counters_number = n.number
  from unnest($1::uuid[], $2::uuid[], $3::int8[]) n (uuid, run, number)
  where r.uuid = n.uuid and (r.counters_run is distinct from n.run or r.counters_number < n.number)
  returning r.uuid::text as uuid`;

/** Sums stop at 2^53 - 1: what one router miscounts must not overflow, and JSON carries no more. */
const added = (table: string, column: 'packets' | 'bytes') =>
  `${column} = least(${table}.${column} + excluded.${column}, ${Number.MAX_SAFE_INTEGER})`;

const RULE_HITS = `insert into rule_hit (rule_uuid, router_uuid, packets, bytes, last_hit_at, shared_by)
  select n.rule, n.router, n.packets, n.bytes, n.last_hit_at, n.shared_by
  from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::timestamptz[], $6::int4[])
    n (rule, router, packets, bytes, last_hit_at, shared_by)
  join firewall_rule r on r.uuid = n.rule
  order by n.rule, n.router
  on conflict (rule_uuid, router_uuid) do update set ${added('rule_hit', 'packets')}, ${added('rule_hit', 'bytes')},
    last_hit_at = greatest(rule_hit.last_hit_at, excluded.last_hit_at), shared_by = excluded.shared_by`;

const FILTER_HITS = `insert into filter_hit (filter_uuid, router_uuid, packets, bytes, last_hit_at)
  select n.filter, n.router, n.packets, n.bytes, n.last_hit_at
  from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::timestamptz[])
    n (filter, router, packets, bytes, last_hit_at)
  join filter f on f.uuid = n.filter
  order by n.filter, n.router
  on conflict (filter_uuid, router_uuid) do update set ${added('filter_hit', 'packets')}, ${added('filter_hit', 'bytes')},
    last_hit_at = greatest(filter_hit.last_hit_at, excluded.last_hit_at)`;

export async function addHits(
  statement: ReportStatement,
  reports: readonly { readonly routerUuid: string; readonly counters: ReportedCounters | undefined }[],
): Promise<void> {
  const counted = reports.flatMap(({ routerUuid, counters }) =>
    counters === undefined ? [] : [{ routerUuid, ...counters }],
  );
  if (counted.length === 0) return;
  const { rows } = await statement<{ uuid: string }>('reports_counted', COUNTED, [
    counted.map((each) => each.routerUuid),
    counted.map((each) => each.run),
    counted.map((each) => each.number),
  ]);
  const fresh = new Set(rows.map((row) => row.uuid));
  const hits = counted
    .filter((each) => fresh.has(each.routerUuid))
    .flatMap(({ routerUuid, hits: list }) =>
      [...mergeHits(list).values()].map((hit) => ({ router: routerUuid, ...hit })),
    );
  if (hits.length === 0) return;
  const values = [
    hits.map((hit) => hit.uuid),
    hits.map((hit) => hit.router),
    hits.map((hit) => hit.packets),
    hits.map((hit) => hit.bytes),
    hits.map((hit) => hit.lastHitAt),
  ];
  await statement('reports_rule_hits', RULE_HITS, [...values, hits.map((hit) => hit.sharedBy ?? null)]);
  await statement('reports_filter_hits', FILTER_HITS, values);
}

/** One row cannot be updated twice by one statement. */
function mergeHits(hits: readonly HitDelta[]): Map<string, HitDelta> {
  const merged = new Map<string, HitDelta>();
  for (const hit of hits) {
    const before = merged.get(hit.uuid);
    if (before === undefined) merged.set(hit.uuid, hit);
    else {
      const lastHitAt = Date.parse(hit.lastHitAt) > Date.parse(before.lastHitAt) ? hit.lastHitAt : before.lastHitAt;
      merged.set(hit.uuid, {
        ...hit,
        lastHitAt,
        packets: Math.min(before.packets + hit.packets, Number.MAX_SAFE_INTEGER),
        bytes: Math.min(before.bytes + hit.bytes, Number.MAX_SAFE_INTEGER),
      });
    }
  }
  return merged;
}
