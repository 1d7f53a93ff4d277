/**
 * Changes a provider: its name, prefixes that it gets and that it loses. A prefix that a user has a part of stays: its
 * addresses must be taken from the users first, by their provider. What the provider itself has there goes with it.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { type Prefix, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { subnetText } from '../store/subnet-text.ts';
import type { AccountWithSubnets } from './account-row.ts';
import { findTaken, savePrefixes } from './create-provider.ts';
import type { Executor } from './executor.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { lockSpace, type WithdrawnSpace, withdrawSpace } from './withdraw-space.ts';

export interface ProviderChange {
  /** Undefined: stays. */
  readonly name: string | undefined;
  /** Each list without overlaps among its entries, and none with the other list's. */
  readonly added: readonly Prefix[];
  readonly removed: readonly Prefix[];
}

export interface ChangedProvider {
  readonly before: AccountWithSubnets;
  readonly account: AccountWithSubnets;
  readonly withdrawn: WithdrawnSpace | undefined;
}

const lockStatement = {
  name: 'provider_lock',
  text: `select uuid from account
    where uuid = $1 and role = 'provider' and deletion_marked_at is null for no key update`,
};

const usersStatement = {
  name: 'provider_prefix_users',
  text: `select given.position::int as position, ${subnetText('s.subnet')} as subnet, a.username, a.uuid::text as uuid
    from unnest($2::cidr[]) with ordinality given (prefix, position)
    join subnet s on s.provider_uuid = $1 and s.role = 'user' and s.subnet && given.prefix
    join account a on a.uuid = s.account_uuid
    order by given.position, s.subnet limit 100`,
};

const changeStatement = {
  name: 'provider_change',
  text: `update account set name = coalesce($2, name), updated_at = greatest(updated_at, date_trunc('milliseconds', now()))
    where uuid = $1`,
};

/** In a transaction. `uuid` is well-formed. */
export async function changeProvider(
  executor: Executor,
  uuid: string,
  { name, added, removed }: ProviderChange,
): Promise<Outcome<ChangedProvider>> {
  if ((await executor.rows(lockStatement, [uuid])).length === 0) return refuse('not_found');
  const before = await loadAccount(executor, uuid);
  if (before === undefined) throw new Error('a locked account is gone');
  const held = await lockSpace(executor, before.uuid);
  const notHeld = findNotHeld(
    removed,
    held.map(({ prefix }) => prefix),
  );
  if (notHeld.length > 0) return refuse('validation_failed', ...notHeld);
  const has = new Set(before.subnets.map((text) => formatPrefix(prefixFromTrusted(text))));
  const fresh = added.map(formatPrefix).filter((text) => !has.has(text));
  const newName = name === before.name ? undefined : name;
  const conflicts = [
    ...(await findUsersIn(executor, before.uuid, removed)),
    ...(await findTaken(executor, { name: newName, prefixes: fresh })).map((problem) => atGiven(problem, fresh, added)),
  ];
  if (conflicts.length > 0) return refuse('conflict', ...conflicts);
  const holder = { accountUuid: before.uuid, providerUuid: before.uuid, role: 'provider' } as const;
  const withdrawn = removed.length === 0 ? undefined : await withdrawSpace(executor, holder, held, removed);
  await savePrefixes(executor, before.uuid, fresh);
  await executor.rows(changeStatement, [before.uuid, newName ?? null]);
  const account = await loadAccount(executor, before.uuid);
  if (account === undefined) throw new Error('a locked account is gone');
  return done({ before, account, withdrawn });
}

function findNotHeld(removed: readonly Prefix[], held: readonly Prefix[]): Problem[] {
  return removed.flatMap((prefix, index) => {
    if (held.some((each) => prefixesOverlap(each, prefix))) return [];
    const field = `/remove_prefixes/${index}`;
    const message = `remove_prefixes.${index}: the provider has no address of ${formatPrefix(prefix)}`;
    return [{ field, code: 'not_held', message }];
  });
}

async function findUsersIn(executor: Executor, uuid: string, removed: readonly Prefix[]): Promise<readonly Problem[]> {
  if (removed.length === 0) return [];
  const rows = await executor.rows<{ position: number; subnet: string; username: string; uuid: string }>(
    usersStatement,
    [uuid, removed.map(formatPrefix)],
  );
  return rows.map((row) => ({
    field: `/remove_prefixes/${row.position - 1}`,
    code: 'ip_in_use',
    message: `remove_prefixes.${row.position - 1}: the user ${row.username} (${row.uuid}) holds ${row.subnet}; take it from the user first`,
  }));
}

/** The problem's place among the prefixes that are new, as a place in the request. */
function atGiven(problem: Problem, fresh: readonly string[], added: readonly Prefix[]): Problem {
  const found = /^\/prefixes\/([0-9]+)$/.exec(problem.field);
  if (found === null) return problem;
  const index = added.findIndex((prefix) => formatPrefix(prefix) === fresh[Number(found[1])]);
  const message = problem.message.replace(/^prefixes\.[0-9]+/, `add_prefixes.${index}`);
  return { ...problem, field: `/add_prefixes/${index}`, message };
}
