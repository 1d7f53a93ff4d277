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

/** In a transaction. */
export async function createFilter(
  executor: Executor,
  caller: Caller,
  { uuid, canonical, expiresAt }: NewFilter,
): Promise<Outcome<FilterRow>> {
  const within = await withinQuota(executor, caller, 'filters', 1);
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
