/**
 * API keys of accounts: issuing, listing, revoking. Who may do it for whom is decided here: an operator for any
 * account, a provider for itself and its users, a user for itself; to others the account does not exist. The key's
 * text never reaches the database, only its SHA-256.
 */

import type { AccountWithSubnets } from './account-row.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { loadAccount } from './load-account.ts';
import { done, type Outcome, refuse } from './outcome.ts';

export interface ApiKeyFacts {
  readonly uuid: string;
  readonly account_uuid: string;
  readonly name: string;
  readonly read_only: boolean;
  readonly sources: readonly string[] | null;
  readonly operations: readonly string[] | null;
  readonly rate_limit: number | null;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
  readonly created_at: Date;
}

const columns = `k.uuid::text as uuid, k.account_uuid::text as account_uuid, k.name, k.read_only,
  case when k.sources is not null then array(
    select case when masklen(s) = case family(s) when 4 then 32 else 128 end then host(s) else s::text end
    from unnest(k.sources) s) end as sources,
  k.operations, k.rate_limit, k.expires_at, k.last_used_at, k.revoked_at, k.created_at`;

export interface NewApiKey {
  readonly uuid: string;
  readonly accountUuid: string;
  /** SHA-256 of the key's text. */
  readonly hash: Buffer;
  readonly name: string;
  readonly readOnly: boolean;
  /** Canonical; undefined: from anywhere. */
  readonly sources: readonly string[] | undefined;
  readonly expiresAt: Date | undefined;
  /** Ids; undefined: all of its role's. */
  readonly operations: readonly string[] | undefined;
  /** Undefined: as the installation has it. */
  readonly requestsPerMinute: number | undefined;
}

/** The account that a key is asked for, when the caller may issue keys for it. */
export async function findKeyHolder(
  executor: Executor,
  caller: Caller,
  accountUuid: string | undefined,
): Promise<Outcome<AccountWithSubnets>> {
  const wanted = accountUuid?.toLowerCase() ?? caller.accountUuid;
  const account = await loadAccount(executor, wanted);
  const may =
    caller.role === 'operator' ||
    wanted === caller.accountUuid ||
    (caller.role === 'provider' && account?.provider_uuid === caller.accountUuid);
  if (account !== undefined && may) return done(account);
  return refuse('not_found', {
    field: '/account_uuid',
    code: 'not_found',
    message: `account_uuid: there is no account ${wanted} for this key`,
  });
}

const createStatement = {
  name: 'api_key_create',
  text: `insert into api_key as k (uuid, account_uuid, hash, name, read_only, sources, expires_at, rate_limit, operations, created_at)
    values ($1, $2, $3, $4, $5, $6::cidr[], $7, $8, $9, date_trunc('milliseconds', now())) returning ${columns}`,
};

export async function createApiKey(executor: Executor, key: NewApiKey): Promise<ApiKeyFacts> {
  const [row] = await executor.rows<ApiKeyFacts>(createStatement, [
    key.uuid,
    key.accountUuid,
    key.hash,
    key.name,
    key.readOnly,
    key.sources ?? null,
    key.expiresAt ?? null,
    key.requestsPerMinute ?? null,
    key.operations ?? null,
  ]);
  if (row === undefined) throw new Error('an insert without a row');
  return row;
}

const listStatement = {
  name: 'api_key_list',
  text: `select ${columns} from api_key k where k.account_uuid = $1 order by k.created_at, k.uuid`,
};

export async function listApiKeys(
  executor: Executor,
  caller: Caller,
  accountUuid: string | undefined,
): Promise<Outcome<readonly ApiKeyFacts[]>> {
  const holder = await findKeyHolder(executor, caller, accountUuid);
  if (!holder.ok) return holder;
  return done(await executor.rows<ApiKeyFacts>(listStatement, [holder.value.uuid]));
}

const readStatement = { name: 'api_key_read', text: `select ${columns} from api_key k where k.uuid = $1` };

export async function readApiKey(executor: Executor, uuid: string): Promise<ApiKeyFacts | undefined> {
  const [row] = await executor.rows<ApiKeyFacts>(readStatement, [uuid]);
  return row;
}

const lockStatement = {
  name: 'api_key_lock',
  text: `select a.role, a.uuid::text as account_uuid, a.provider_uuid::text as provider_uuid
    from api_key k join account a on a.uuid = k.account_uuid where k.uuid = $1 for no key update of k, a`,
};

const othersStatement = {
  name: 'api_key_other_operators',
  text: `select from api_key k join account a on a.uuid = k.account_uuid
    where a.role = 'operator' and k.uuid <> $1 and k.revoked_at is null and not k.read_only
      and k.expires_at is null and k.sources is null and k.operations is null limit 1`,
};

const revokeStatement = {
  name: 'api_key_revoke',
  text: `update api_key k set revoked_at = coalesce(k.revoked_at, date_trunc('milliseconds', now()))
    where k.uuid = $1 returning ${columns}`,
};

export interface RevokedKey {
  readonly before: ApiKeyFacts;
  readonly key: ApiKeyFacts;
  readonly providerUuid: string | null;
}

/** Revoking twice changes nothing. The last unrestricted operator key stays: without it nobody could issue another. */
export async function revokeApiKey(executor: Executor, caller: Caller, uuid: string): Promise<Outcome<RevokedKey>> {
  const [holder] = await executor.rows<{ role: string; account_uuid: string; provider_uuid: string | null }>(
    lockStatement,
    [uuid],
  );
  const may =
    holder !== undefined &&
    (caller.role === 'operator' ||
      holder.account_uuid === caller.accountUuid ||
      (caller.role === 'provider' && holder.provider_uuid === caller.accountUuid));
  if (!may) return refuse('not_found');
  if (holder.role === 'operator' && (await executor.rows(othersStatement, [uuid])).length === 0) {
    return refuse('conflict', {
      field: '',
      code: 'in_use',
      message: 'This is the last operator key without restrictions; issue another one before revoking it.',
    });
  }
  const before = await readApiKey(executor, uuid);
  const [key] = await executor.rows<ApiKeyFacts>(revokeStatement, [uuid]);
  if (before === undefined || key === undefined) throw new Error('a locked key is gone');
  return done({ before, key, providerUuid: holder.provider_uuid });
}
