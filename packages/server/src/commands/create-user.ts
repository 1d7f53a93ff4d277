/** Creates a user of a provider, with its subnets. The password arrives hashed. */
import type { Problem } from '@levee/contract/errors.ts';
import type { AccountWithSubnets } from './account-row.ts';
import type { Executor } from './executor.ts';
import { findGrantFaults, grantSubnets, refuseGrant } from './grant-subnets.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome } from './outcome.ts';
import { findProviderObjects, type Overlapped } from './provider-objects.ts';
import { withinQuota } from './quota.ts';

export interface NewUser {
  readonly uuid: string;
  readonly providerUuid: string;
  readonly username: string;
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string;
  /** Canonical, without overlaps among themselves. */
  readonly subnets: readonly string[];
}

const createStatement = {
  name: 'user_create',
  text: `insert into account (uuid, role, provider_uuid, name, username, email, password_hash, created_at, updated_at)
    values ($1, 'user', $2, $3, $4, $5, $6, date_trunc('milliseconds', now()), date_trunc('milliseconds', now()))`,
};

const takenStatement = {
  name: 'user_names_taken',
  text: `select
      exists (select from account where provider_uuid = $1 and username = $2 and role = 'user'
        and deletion_marked_at is null) as username,
      exists (select from account where lower(email) = lower($3) and deletion_marked_at is null) as email`,
};

/** All that is taken, at once; of two users created at the same time the constraints refuse one. */
async function findTaken(executor: Executor, user: NewUser): Promise<readonly Problem[]> {
  const values = [user.providerUuid, user.username, user.email];
  const [taken] = await executor.rows<{ username: boolean; email: boolean }>(takenStatement, values);
  return (['username', 'email'] as const)
    .filter((name) => taken?.[name])
    .map((name) => ({
      field: `/${name}`,
      code: 'already_exists',
      message: `${name}: is taken already; it must be one that is not in use`,
    }));
}

export interface CreatedUser {
  readonly account: AccountWithSubnets;
  /** The provider's own on what was given. */
  readonly overlapped: readonly Overlapped[];
}

export async function createUser(executor: Executor, user: NewUser): Promise<Outcome<CreatedUser>> {
  const faults = [
    ...(await findTaken(executor, user)),
    ...(await findGrantFaults(executor, user.providerUuid, user.uuid, user.subnets)),
  ];
  if (faults.length > 0) return refuseGrant(faults);
  const { providerUuid } = user;
  const within = await withinQuota(executor, { accountUuid: providerUuid, providerUuid }, 'users', 1);
  if (!within.ok) return within;
  await executor.rows(createStatement, [
    user.uuid,
    user.providerUuid,
    user.name,
    user.username,
    user.email,
    user.passwordHash,
  ]);
  await grantSubnets(executor, user.providerUuid, user.uuid, user.subnets);
  const account = await loadAccount(executor, user.uuid);
  if (account === undefined) throw new Error('a row just written is gone');
  return done({ account, overlapped: await findProviderObjects(executor, providerUuid, user.subnets) });
}
