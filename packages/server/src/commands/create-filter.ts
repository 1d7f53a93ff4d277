/**
 * Creates a filter: one statement finds the owner's subnet that covers the destination, stores the filter and writes the
 * change log. The filter's foreign key to the subnet decides a race with a removal of that subnet.
 */
import type { CanonicalFilter } from '@levee/core/filter/filter.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { type FilterRow, filterColumns, filterHits } from './filter-row.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { notAllowed, placeText } from './own-space.ts';
import { withinQuota } from './quota.ts';

export interface NewFilter {
  readonly uuid: string;
  readonly canonical: CanonicalFilter;
  readonly expiresAt: Date | undefined;
}

const createStatement = {
  name: 'filter_create',
  text: `with place as (${placeText}), drawn as (
      select place.*, nextval('change_position') as position from place
    ), created as (
      insert into filter (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, kind, fields, created_at, updated_at,
        expires_at, change_position)
      select $4, position, $1, provider_uuid, subnet, $2, $5, $6::json, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), $7, position
      from drawn returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'filter', uuid from created
    )
    select ${filterColumns} from created r ${filterHits}`,
};

/**
 * Live filters with one destination, whoever's. Each asks every packet to it, and each may keep 65,535 sources a meter in
 * the router's memory (10 MB was measured): without a bound, a customer could fill it with copies of one filter.
 */
export const mostFiltersOfDestination = 32;

/** Creators at one destination take turns until they commit, so that the count below is exact. */
const turnStatement = {
  name: 'filter_turn',
  text: `select pg_advisory_xact_lock(hashtextextended('filters of ' || $1::text, 0))`,
};

const countStatement = {
  name: 'filters_of_destination',
  text: `select count(*)::int as present from filter where dst = $1::cidr and deletion_marked_at is null`,
};

async function withinDestination(executor: Executor, dst: string): Promise<Outcome<undefined>> {
  if (!executor.inTransaction) throw new Error('filters are counted outside the creating transaction');
  await executor.rows(turnStatement, [dst]);
  const [row] = await executor.rows<{ present: number }>(countStatement, [dst]);
  if ((row?.present ?? 0) < mostFiltersOfDestination) return done(undefined);
  const message =
    `dst: ${dst} has ${mostFiltersOfDestination} filters, which is the most that one destination may have; ` +
    'delete some that are not needed';
  return refuse('quota_exceeded', { field: '/dst', code: 'maximum_reached', message });
}

/** In a transaction. */
export async function createFilter(
  executor: Executor,
  caller: Caller,
  { uuid, canonical, expiresAt }: NewFilter,
): Promise<Outcome<FilterRow>> {
  const quota = await withinQuota(executor, caller, 'filters', 1);
  const within = quota.ok ? await withinDestination(executor, canonical.dst) : quota;
  const [row] = await executor.rows<FilterRow>(createStatement, [
    caller.accountUuid,
    canonical.dst,
    caller.role === 'provider',
    uuid,
    canonical.filter,
    JSON.stringify(canonical),
    expiresAt ?? null,
  ]);
  if (row === undefined) return refuse('ip_not_allowed', notAllowed('/dst', canonical.dst, caller));
  return within.ok ? done(row) : within;
}
