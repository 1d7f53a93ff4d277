/** Gives a user of the provider another password, found by email. It arrives hashed. */
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';

const resetStatement = {
  name: 'password_reset',
  text: `update account set password_hash = $3, updated_at = date_trunc('milliseconds', now())
    where lower(email) = lower($2) and provider_uuid = $1 and role = 'user' and deletion_marked_at is null
    returning uuid::text as uuid`,
};

export async function resetPassword(
  executor: Executor,
  providerUuid: string,
  email: string,
  passwordHash: string,
): Promise<Outcome<{ readonly userUuid: string }>> {
  const [user] = await executor.rows<{ uuid: string }>(resetStatement, [providerUuid, email, passwordHash]);
  if (user !== undefined) return done({ userUuid: user.uuid });
  return refuse('not_found', {
    field: '/email',
    code: 'not_found',
    message: 'email: the provider has no user with this address',
  });
}
