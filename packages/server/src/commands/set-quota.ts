/** Sets and reads an account's quotas. Providers and users have them; the operator itself has none. */
import { type QuotaKind, quotaKinds } from '@levee/contract/schemas/quota.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { countUsed } from './quota.ts';

export interface QuotaUse {
  readonly maximum: number;
  readonly used: number;
}

export interface AccountQuota {
  readonly accountUuid: string;
  readonly providerUuid: string;
  readonly quotas: Readonly<Partial<Record<QuotaKind, QuotaUse>>>;
}

interface AccountRow {
  readonly uuid: string;
  readonly role: 'provider' | 'user';
  readonly provider_uuid: string;
}

const accountText = `select uuid::text as uuid, role, provider_uuid::text as provider_uuid from account
  where uuid = $1 and role <> 'operator' and deletion_marked_at is null`;
const readAccountStatement = { name: 'quota_account', text: accountText };
const lockAccountStatement = { name: 'quota_account_lock', text: `${accountText} for no key update` };

const setStatement = {
  name: 'quota_set',
  text: `insert into quota (account_uuid, kind, maximum)
    select $1, w.kind, w.maximum from unnest($2::text[], $3::int[]) w (kind, maximum) order by w.kind
    on conflict (account_uuid, kind) do update set maximum = excluded.maximum, updated_at = now()
      where quota.maximum <> excluded.maximum`,
};

const dropStatement = {
  name: 'quota_drop',
  text: 'delete from quota where account_uuid = $1 and not kind = any($2::text[])',
};

const readStatement = { name: 'quota_read', text: 'select kind, maximum from quota where account_uuid = $1' };

/** Those that are set, in the order of `quotaKinds`. `isProvider`: its users' objects count too. */
export async function readQuotas(
  executor: Executor,
  accountUuid: string,
  isProvider: boolean,
): Promise<AccountQuota['quotas']> {
  const rows = await executor.rows<{ kind: QuotaKind; maximum: number }>(readStatement, [accountUuid]);
  const quotas: Partial<Record<QuotaKind, QuotaUse>> = {};
  for (const kind of quotaKinds) {
    const row = rows.find((each) => each.kind === kind);
    if (row === undefined) continue;
    // All of them are counted: a figure that stops at the maximum would not tell by how much to shrink.
    quotas[kind] = { used: await countUsed(executor, accountUuid, isProvider, kind, null), maximum: row.maximum };
  }
  return quotas;
}

/** `uuid` is well-formed. */
export async function readQuota(executor: Executor, uuid: string): Promise<Outcome<AccountQuota>> {
  const [account] = await executor.rows<AccountRow>(readAccountStatement, [uuid]);
  return account === undefined ? refuse('not_found') : done(await quotaOf(executor, account));
}

async function quotaOf(executor: Executor, { uuid, role, provider_uuid }: AccountRow): Promise<AccountQuota> {
  const quotas = await readQuotas(executor, uuid, role === 'provider');
  return { accountUuid: uuid, providerUuid: provider_uuid, quotas };
}

export interface QuotaChange {
  readonly before: AccountQuota;
  readonly after: AccountQuota;
}

/** `maxima` is the whole of it: other kinds have no quota from then on. `uuid` is well-formed. */
export async function setQuota(
  executor: Executor,
  uuid: string,
  maxima: ReadonlyMap<QuotaKind, number>,
): Promise<Outcome<QuotaChange>> {
  const [account] = await executor.rows<AccountRow>(lockAccountStatement, [uuid]);
  if (account === undefined) return refuse('not_found');
  if (account.role === 'user' && maxima.has('users')) {
    const message = 'users: a user has no users of its own; this quota is for providers';
    return refuse('validation_failed', { field: '/users', code: 'not_applicable', message });
  }
  const before = await quotaOf(executor, account);
  const kinds = [...maxima.keys()];
  await executor.rows(dropStatement, [account.uuid, kinds]);
  await executor.rows(setStatement, [account.uuid, kinds, [...maxima.values()]]);
  return done({ before, after: await quotaOf(executor, account) });
}
