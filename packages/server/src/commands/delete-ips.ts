/**
 * Takes addresses away from a user, whole subnets or parts of them: of a subnet that is only partly taken the rest
 * stays. What that means for the user's objects is withdraw-space.ts' to know.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { type Prefix, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { type ChangedAccount, noSuchUser } from './add-ips.ts';
import type { Executor } from './executor.ts';
import { loadAccount, lockUser, touchAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { lockSpace, type WithdrawnSpace, withdrawSpace } from './withdraw-space.ts';

export interface IpsDeleted extends ChangedAccount {
  readonly withdrawn: WithdrawnSpace;
}

export async function deleteIps(
  executor: Executor,
  providerUuid: string,
  userUuid: string,
  taken: readonly Prefix[],
): Promise<Outcome<IpsDeleted>> {
  if (!(await lockUser(executor, providerUuid, userUuid))) return refuse('not_found', noSuchUser(userUuid));
  const before = await loadAccount(executor, userUuid);
  const held = await lockSpace(executor, userUuid);
  const problems = findNotHeld(
    taken,
    held.map((each) => each.prefix),
  );
  if (problems.length > 0) return refuse('validation_failed', ...problems);
  const holder = { accountUuid: userUuid, providerUuid, role: 'user' } as const;
  const withdrawn = await withdrawSpace(executor, holder, held, taken);
  await touchAccount(executor, userUuid);
  const account = await loadAccount(executor, userUuid);
  if (before === undefined || account === undefined) throw new Error('a locked account is gone');
  return done({ before, account, withdrawn });
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
