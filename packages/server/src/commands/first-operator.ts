/**
 * Makes the operator of a new installation with its first key. On one that has an operator it does nothing, whatever
 * key is given: replicas that start at once and later starts find it done.
 */
import { recordOwnAction } from '../store/own-actions.ts';
import { createApiKey } from './api-key.ts';
import type { Executor } from './executor.ts';

const turnStatement = {
  name: 'operator_turn',
  text: `select pg_advisory_xact_lock(hashtextextended('levee first operator', 0))`,
};

const existsStatement = { name: 'operator_exists', text: `select from account where role = 'operator' limit 1` };

const createStatement = {
  name: 'operator_create',
  text: `insert into account (uuid, role, name) values ($1, 'operator', 'operator')`,
};

/** Runs in a transaction. `hash`: SHA-256 of the key's text. False: there is an operator already. */
export async function createFirstOperator(
  executor: Executor,
  operator: { readonly accountUuid: string; readonly keyUuid: string; readonly hash: Buffer },
): Promise<boolean> {
  await executor.rows(turnStatement, []);
  if ((await executor.rows(existsStatement, [])).length > 0) return false;
  await executor.rows(createStatement, [operator.accountUuid]);
  await createApiKey(executor, {
    uuid: operator.keyUuid,
    accountUuid: operator.accountUuid,
    hash: operator.hash,
    name: 'first',
    readOnly: false,
    sources: undefined,
    expiresAt: undefined,
    operations: undefined,
    requestsPerMinute: undefined,
  });
  const { accountUuid } = operator;
  await recordOwnAction(executor.client, {
    action: 'install',
    kind: 'account',
    uuid: accountUuid,
    ownerUuid: accountUuid,
    after: { role: 'operator', name: 'operator' },
  });
  return true;
}
