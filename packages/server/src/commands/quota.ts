/**
 * Whether an account may hold more objects of a kind. A provider's quota counts what it and all of its users hold, a
 * user's its own, and both apply. Owns the question and its exactness: the quota rows are locked in the creating
 * transaction and the objects counted after it, so that of two creators at once the second sees the first one's.
 * Accounts without a quota pay for one look at an index.
 *
 * What counts is live: not what is marked for deletion, nor a key that is revoked or expired; and what an account asked for:
 * no measures against attacks.
 */
import { mostOfAnAccount, type QuotaKind } from '@levee/contract/schemas/quota.ts';
import type { Executor, Statement } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';

/** Whose the objects are. A caller is one, where the objects are its own. */
export interface QuotaHolder {
  readonly accountUuid: string;
  /** A provider's own uuid for a provider; null for the operator. */
  readonly providerUuid: string | null;
}

/** What is counted: a table, called `o`, and the conditions on its rows; $1 is the account. */
interface Counted {
  readonly from: string;
  readonly live: string;
  readonly ofAccount: string;
  readonly ofProvider: string;
}

const stored = (table: string): Counted => ({
  from: `${table} o`,
  live: 'o.deletion_marked_at is null',
  ofAccount: 'o.owner_uuid = $1',
  ofProvider: 'o.provider_uuid = $1',
});

const counted: Readonly<Record<QuotaKind, Counted>> = {
  firewall_rules: { ...stored('firewall_rule'), live: `o.deletion_marked_at is null and o.origin = 'customer'` },
  filters: stored('filter'),
  tunnels: stored('tunnel'),
  rdns: stored('rdns_record'),
  users: {
    from: 'account o',
    live: `o.role = 'user' and o.deletion_marked_at is null`,
    // A user holds no users.
    ofAccount: 'o.provider_uuid = $1',
    ofProvider: 'o.provider_uuid = $1',
  },
  api_keys: {
    from: 'api_key o join account a on a.uuid = o.account_uuid',
    live: 'o.revoked_at is null and (o.expires_at is null or o.expires_at > now()) and a.deletion_marked_at is null',
    ofAccount: 'o.account_uuid = $1',
    ofProvider: 'a.provider_uuid = $1',
  },
  webhooks: {
    from: 'webhook o join account a on a.uuid = o.owner_uuid',
    live: 'o.deletion_marked_at is null and a.deletion_marked_at is null',
    ofAccount: 'o.owner_uuid = $1',
    ofProvider: 'a.provider_uuid = $1',
  },
};

/** Counting stops at $2: a refusal must not cost more than what is allowed. */
function countStatement(kind: QuotaKind, of: 'ofAccount' | 'ofProvider'): Statement {
  const { from, live } = counted[kind];
  return {
    name: `quota_count_${kind}_${of}`,
    text: `select count(*)::int as used from (select from ${from} where ${counted[kind][of]} and ${live} limit $2) o`,
  };
}

/** Ordered, so that two creators of one provider wait for each other and never deadlock on these rows. */
const lockStatement = {
  name: 'quota_lock',
  text: `select account_uuid::text as account_uuid, maximum from quota
    where kind = $1 and account_uuid = any($2::uuid[]) order by account_uuid for update`,
};

/**
 * Call it in the creating transaction, before the rows are written: `adding` is by how many the account will hold more.
 * Refuses with `quota_exceeded` when the holder or its provider would have too many; a command that finds something
 * else wrong tells that instead.
 */
export async function withinQuota(
  executor: Executor,
  holder: QuotaHolder,
  kind: QuotaKind,
  adding: number,
): Promise<Outcome<undefined>> {
  if (!executor.inTransaction) throw new Error('a quota is asked about outside the creating transaction');
  const { accountUuid, providerUuid } = holder;
  const accounts = providerUuid === null || providerUuid === accountUuid ? [accountUuid] : [accountUuid, providerUuid];
  const rows = await executor.rows<{ account_uuid: string; maximum: number }>(lockStatement, [kind, accounts]);
  // The own one first: what an account can mend itself is told before what it cannot.
  const own = rows.toSorted((a, b) => Number(b.account_uuid === accountUuid) - Number(a.account_uuid === accountUuid));
  for (const { account_uuid, maximum } of own) {
    const used = await countUsed(executor, account_uuid, account_uuid === providerUuid, kind, maximum + 1);
    if (used + adding <= maximum) continue;
    return refuse('quota_exceeded', exceeded(kind, account_uuid === accountUuid, maximum, used));
  }
  const most = mostOfAnAccount[kind];
  return most === undefined ? done(undefined) : withinMost(executor, accountUuid, kind, adding, most);
}

/** What nobody can raise. Without a quota's row it is the account that creators at once wait for. */
const lockAccountStatement = {
  name: 'quota_lock_account',
  text: 'select from account where uuid = $1 for no key update',
};

async function withinMost(
  executor: Executor,
  accountUuid: string,
  kind: QuotaKind,
  adding: number,
  most: number,
): Promise<Outcome<undefined>> {
  await executor.rows(lockAccountStatement, [accountUuid]);
  const used = await countUsed(executor, accountUuid, false, kind, most + 1);
  if (used + adding <= most) return done(undefined);
  const message = `${kind}: an account may hold ${most}, and this one holds ${used}; delete some that are not needed`;
  return refuse('quota_exceeded', {
    field: '',
    code: 'maximum_reached',
    message,
    quota: { kind, maximum: most, used },
  });
}

/** At most `most`; null: all of them. */
export async function countUsed(
  executor: Executor,
  accountUuid: string,
  isProvider: boolean,
  kind: QuotaKind,
  most: number | null,
): Promise<number> {
  const statement = countStatement(kind, isProvider ? 'ofProvider' : 'ofAccount');
  const [row] = await executor.rows<{ used: number }>(statement, [accountUuid, most]);
  return row?.used ?? 0;
}

/** A user is not told its provider's figures. */
function exceeded(kind: QuotaKind, isOwn: boolean, maximum: number, used: number) {
  if (!isOwn) {
    const message = `${kind}: the provider's quota is used up; it can free some of it, or ask the operator for more`;
    return { field: '', code: 'provider_quota_exceeded', message, quota: { kind } };
  }
  const holds = used > maximum ? `more than ${maximum}` : String(used);
  const message = `${kind}: the account holds ${holds} of at most ${maximum}, which does not leave room for this request; delete some or ask the operator for more`;
  return { field: '', code: 'quota_exceeded', message, quota: { kind, maximum, used } };
}
