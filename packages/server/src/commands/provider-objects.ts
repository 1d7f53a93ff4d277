/**
 * What a provider itself has on addresses that it gives to a user: it stays the provider's and in force, the user can
 * neither see nor remove it, and with some of it the user cannot have its own. Owns which rows these are.
 */
import type { Executor } from './executor.ts';

export type OverlappedKind = 'firewall_rule' | 'filter' | 'tunnel' | 'rdns';

export interface Overlapped {
  readonly kind: OverlappedKind;
  readonly count: number;
  /** The oldest of them. */
  readonly uuids: readonly string[];
}

/** Uuids of a kind in an answer. */
export const NAMED_AT_MOST = 20;

const sources: Readonly<Record<OverlappedKind, string>> = {
  firewall_rule: 'firewall_rule o on o.dst && given.subnet',
  filter: 'filter o on o.dst && given.subnet',
  tunnel: 'tunnel_subnet t on t.routed && given.subnet join tunnel o on o.uuid = t.tunnel_uuid',
  rdns: 'rdns_record o on o.address <<= given.subnet',
};

const ofKind = (kind: string, source: string) =>
  `select '${kind}' as kind, count(*)::int as count, (array_agg(found.uuid order by found.sequence))[:${NAMED_AT_MOST}]::text[] as uuids
    from (select distinct o.uuid, o.sequence from unnest($2::cidr[]) given (subnet) join ${source}
      where o.owner_uuid = $1 and o.deletion_marked_at is null) found`;

const statement = {
  name: 'provider_objects',
  text: `select * from (${Object.entries(sources)
    .map(([kind, source]) => ofKind(kind, source))
    .join('\n    union all ')}) kinds where count > 0`,
};

/** `subnets`: canonical. Kinds without any are left out. */
export async function findProviderObjects(
  executor: Executor,
  providerUuid: string,
  subnets: readonly string[],
): Promise<readonly Overlapped[]> {
  return subnets.length === 0 ? [] : executor.rows<Overlapped>(statement, [providerUuid, subnets]);
}
