/**
 * Takes addresses away from a user, whole subnets or parts of them: of a subnet that is only partly taken the rest
 * stays. Every rule of the user's that touches what was taken is marked for deletion in the same transaction; the
 * others move to the subnet that now covers them.
 *
 * The user's subnet rows are locked first: a rule being created holds a share of its row, so it is either seen here
 * or refused there.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { comparePrefixes, type Prefix, prefixContains, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { prefixesOfRange, rangeOfPrefix } from '@levee/core/net/range.ts';
import { type ChangedAccount, noSuchUser } from './add-ips.ts';
import type { Executor } from './executor.ts';
import { loadAccount, lockUser, touchAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { withdrawSpace } from './pending-undo.ts';
import type { ChangePlace } from './stored-row.ts';

export interface IpsDeleted extends ChangedAccount {
  readonly removedRules: number;
  /** The last of the changes; undefined when no rule was concerned. */
  readonly change: ChangePlace | undefined;
}

const lockStatement = {
  name: 'ips_lock',
  text: 'select subnet::text, provider_subnet::text from subnet where account_uuid = $1 order by subnet for update',
};

const markStatement = {
  name: 'ips_mark_rules',
  text: `with marked as (
      update firewall_rule r set deletion_marked_at = date_trunc('milliseconds', now()),
        updated_at = date_trunc('milliseconds', now()), subnet = null,
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.owner_uuid = $1 and r.subnet is not null and r.dst && any($2::cidr[])
      returning r.uuid, r.change_xid, r.change_position
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from marked
    )
    select count(*)::int as removed, max(change_position) as change_position, pg_current_xact_id()::text::int8 as change_xid
    from marked`,
};

const deferStatement = { name: 'ips_defer', text: 'set constraints firewall_rule_subnet deferred' };

const dropStatement = {
  name: 'ips_drop',
  text: 'delete from subnet where account_uuid = $1 and subnet = any($2::cidr[])',
};

const remainderStatement = {
  name: 'ips_remainder',
  text: `insert into subnet (account_uuid, subnet, role, provider_uuid, provider_subnet)
    select $1, rest.subnet, 'user', $2, rest.provider_subnet
    from unnest($3::cidr[], $4::cidr[]) rest (subnet, provider_subnet)`,
};

const moveStatement = {
  name: 'ips_move_rules',
  text: `update firewall_rule r set subnet = rest.subnet from unnest($2::cidr[]) rest (subnet)
    where r.owner_uuid = $1 and r.subnet >> rest.subnet and r.dst <<= rest.subnet`,
};

interface HeldRow {
  readonly subnet: string;
  readonly provider_subnet: string;
}

export async function deleteIps(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  taken: readonly Prefix[],
): Promise<Outcome<IpsDeleted>> {
  if (!(await lockUser(executor, providerUuid, userUuid))) return refuse('not_found', noSuchUser(userUuid));
  const before = await loadAccount(executor, userUuid);
  const rows = await executor.rows<HeldRow>(lockStatement, [userUuid]);
  const held = rows.map((row) => ({ prefix: prefixFromTrusted(row.subnet), providerSubnet: row.provider_subnet }));
  const problems = findNotHeld(
    taken,
    held.map((each) => each.prefix),
  );
  if (problems.length > 0) return refuse('validation_failed', ...problems);

  const [marked] = await executor.rows<ChangePlace & { removed: number }>(markStatement, [
    userUuid,
    taken.map(formatPrefix),
  ]);
  await withdrawSpace(executor, userUuid, taken.map(formatPrefix));
  await executor.rows(deferStatement, []);
  const touched = held.filter(({ prefix }) => taken.some((each) => prefixesOverlap(each, prefix)));
  const rest = touched.flatMap(({ prefix, providerSubnet }) =>
    subtract(prefix, taken).map((piece) => ({ piece: formatPrefix(piece), providerSubnet })),
  );
  await executor.rows(dropStatement, [userUuid, touched.map(({ prefix }) => formatPrefix(prefix))]);
  if (rest.length > 0) {
    const pieces = rest.map(({ piece }) => piece);
    const within = rest.map(({ providerSubnet }) => providerSubnet);
    await executor.rows(remainderStatement, [userUuid, providerUuid, pieces, within]);
    await executor.rows(moveStatement, [userUuid, pieces]);
  }
  await touchAccount(executor, userUuid);
  const account = await loadAccount(executor, userUuid);
  if (before === undefined || account === undefined) throw new Error('a locked account is gone');
  const removedRules = marked?.removed ?? 0;
  return done({ before, account, removedRules, change: removedRules > 0 ? marked : undefined });
}

function findNotHeld(taken: readonly Prefix[], held: readonly Prefix[]): Problem[] {
  return taken.flatMap((prefix, index) =>
    held.some((each) => prefixesOverlap(each, prefix))
      ? []
      : [
          {
            field: `/ips/${index}`,
            code: 'not_held',
            message: `ips.${index}: the user holds no address of ${formatPrefix(prefix)}`,
          },
        ],
  );
}

/** What is left of `prefix`, as the fewest prefixes. `taken` do not overlap each other. */
export function subtract(prefix: Prefix, taken: readonly Prefix[]): Prefix[] {
  if (taken.some((each) => prefixContains(each, prefix))) return [];
  const inside = taken.filter((each) => prefixContains(prefix, each)).sort(comparePrefixes);
  const whole = rangeOfPrefix(prefix);
  const pieces: Prefix[] = [];
  let from = whole.start;
  for (const each of inside) {
    const { start, end } = rangeOfPrefix(each);
    if (start > from) pieces.push(...prefixesOfRange({ family: prefix.family, start: from, end: start - 1n }));
    from = end + 1n;
  }
  if (from <= whole.end) pieces.push(...prefixesOfRange({ family: prefix.family, start: from, end: whole.end }));
  return pieces;
}
