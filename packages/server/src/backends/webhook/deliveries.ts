/**
 * Deliveries as rows: taken when they are due, ended or put off by what an attempt gave. Owns these statements, and which
 * webhooks get anything at all; sends nothing. How they are made is fan-out.ts', how they are forgotten forget.ts'.
 */
import type pg from 'pg';
import { recordOwnAction } from '../../store/own-actions.ts';
import { inTransaction } from '../../store/transaction.ts';
import type { Attempt } from './send.ts';

/** SQL: webhook `w` gets what it should. Its key is named only when that key has limits, which the webhook shares. */
export const isLive = `not w.disabled and w.deletion_marked_at is null
    and exists (select from account a where a.uuid = w.owner_uuid and a.deletion_marked_at is null)
    and (w.key_uuid is null or exists (select from api_key k where k.uuid = w.key_uuid and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > clock_timestamp())))`;

export interface DueDelivery {
  readonly uuid: string;
  readonly webhook: string;
  readonly account: string;
  readonly url: string;
  /** The present one first. */
  readonly secrets: readonly string[];
  readonly name: string;
  readonly event_id: string | null;
  readonly at_ms: number;
  /** JSON text. */
  readonly data: string;
  readonly round_attempts: number;
  readonly round_seconds: number;
  /** Null: what was tried last was delivered. */
  readonly failing_seconds: number | null;
}

/** As many of each webhook as it has slots, those that have waited longest first. */
const TAKE = `select d.uuid::text as uuid, w.uuid::text as webhook, w.owner_uuid::text as account, w.url,
    case when w.former_secret_until > now() then array[w.secret, w.former_secret] else array[w.secret] end as secrets,
    d.name, d.event_id, round(date_part('epoch', coalesce(e.at, d.created_at)) * 1000) as at_ms,
    coalesce(e.data, d.test_data)::text as data, d.round_attempts,
    date_part('epoch', clock_timestamp() - d.round_at) as round_seconds,
    date_part('epoch', clock_timestamp() - w.failing_since) as failing_seconds
  from unnest($1::uuid[], $2::int[]) q (webhook, slots)
  join webhook w on w.uuid = q.webhook and ${isLive}
  cross join lateral (
    select * from webhook_delivery
    where webhook_uuid = w.uuid and state = 'pending' and next_attempt_at <= clock_timestamp() and uuid <> all($3::uuid[])
    order by next_attempt_at limit q.slots
  ) d
  left join event e on e.sequence = d.event_sequence`;

export async function takeDue(
  pool: Pick<pg.Pool, 'query'>,
  slots: ReadonlyMap<string, number>,
  underWay: readonly string[],
): Promise<readonly DueDelivery[]> {
  const { rows } = await pool.query<DueDelivery>({
    name: 'webhook_deliveries_due',
    text: TAKE,
    values: [[...slots.keys()], [...slots.values()], underWay],
  });
  return rows;
}

/** One look at an index a webhook, however much waits for it. */
const NEXT = `select w.uuid::text as webhook, w.owner_uuid::text as account, w.url,
    greatest(0, date_part('epoch', d.next_attempt_at - clock_timestamp()) * 1000) as milliseconds
  from webhook w cross join lateral (
    select next_attempt_at from webhook_delivery
    where webhook_uuid = w.uuid and state = 'pending' and uuid <> all($2::uuid[])
    order by next_attempt_at limit 1
  ) d
  where ($1::uuid[] is null or w.uuid = any($1)) and ${isLive}`;

/** Of a webhook that has something to send. */
export interface NextDue {
  readonly webhook: string;
  readonly account: string;
  readonly url: string;
  /** Until its next delivery is due. */
  readonly milliseconds: number;
}

/** `webhooks` undefined: of all. */
export async function nextDue(
  pool: Pick<pg.Pool, 'query'>,
  webhooks: readonly string[] | undefined,
  underWay: readonly string[],
): Promise<readonly NextDue[]> {
  return (await pool.query<NextDue>(NEXT, [webhooks ?? null, underWay])).rows;
}

/** Those that failed when they were last tried, from before this replica leads. */
export async function loadFailing(pool: Pick<pg.Pool, 'query'>): Promise<readonly string[]> {
  const { rows } = await pool.query<{ uuid: string }>(
    `select w.uuid::text as uuid from webhook w where w.failing_since is not null and ${isLive}`,
  );
  return rows.map(({ uuid }) => uuid);
}

/** Of the given ones those that may get something. */
export async function loadLive(
  pool: Pick<pg.Pool, 'query'>,
  webhooks: readonly string[],
): Promise<ReadonlySet<string>> {
  if (webhooks.length === 0) return new Set();
  const { rows } = await pool.query<{ uuid: string }>(
    `select w.uuid::text as uuid from webhook w where w.uuid = any($1::uuid[]) and ${isLive}`,
    [webhooks],
  );
  return new Set(rows.map(({ uuid }) => uuid));
}

export interface Outcome {
  readonly uuid: string;
  readonly webhook: string;
  readonly attempt: Attempt;
  readonly atMilliseconds: number;
  readonly durationMilliseconds: number;
  /** Of a failure; absent: it is given up. */
  readonly retrySeconds?: number | undefined;
}

/** The log keeps the 20 latest. One that was cancelled meanwhile stays so. */
const SAVE = `with saved as (
    update webhook_delivery set state = $2, round_attempts = round_attempts + 1,
      next_attempt_at = case when $2 = 'pending' then clock_timestamp() + make_interval(secs => $3) end,
      ended_at = case when $2 <> 'pending' then clock_timestamp() end,
      attempts = case when jsonb_array_length(attempts) >= 20 then attempts - 0 else attempts end || $4::jsonb
    where uuid = $1 and state = 'pending'
    returning webhook_uuid
  )
  update webhook w set failing_since = case when $5::text is not null then coalesce(w.failing_since, clock_timestamp()) end,
    failure = $5
  from saved
  where w.uuid = saved.webhook_uuid and w.failure is distinct from $5`;

export async function saveOutcome(pool: Pick<pg.Pool, 'query'>, outcome: Outcome): Promise<void> {
  const { uuid, attempt, atMilliseconds, durationMilliseconds, retrySeconds } = outcome;
  const state = attempt.delivered ? 'delivered' : retrySeconds === undefined ? 'given_up' : 'pending';
  const entry = {
    at: new Date(atMilliseconds).toISOString(),
    duration_ms: Math.round(durationMilliseconds),
    ...(attempt.status !== undefined && { status: attempt.status }),
    ...(attempt.error !== undefined && { error: attempt.error }),
  };
  await pool.query({
    name: 'webhook_delivery_save',
    text: SAVE,
    values: [uuid, state, retrySeconds ?? null, JSON.stringify([entry]), attempt.error ?? null],
  });
}

const DISABLE = `update webhook w set disabled = true, disabled_reason = $2, updated_at = date_trunc('milliseconds', now())
  from account a
  where w.uuid = $1 and not w.disabled and w.deletion_marked_at is null and a.uuid = w.owner_uuid
  returning w.owner_uuid::text as owner, a.provider_uuid::text as provider`;

const CANCEL = `update webhook_delivery set state = 'cancelled', next_attempt_at = null, ended_at = clock_timestamp()
  where webhook_uuid = $1 and state = 'pending'`;

/** What waits is cancelled. Nothing happens to one that is disabled or gone already. */
export async function disableWebhook(pool: pg.Pool, webhook: string, reason: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ owner: string; provider: string | null }>(DISABLE, [webhook, reason]);
    const [row] = rows;
    if (row === undefined) return;
    await client.query(CANCEL, [webhook]);
    await recordOwnAction(client, {
      action: 'disable',
      kind: 'webhook',
      uuid: webhook,
      ownerUuid: row.owner,
      ...(row.provider !== null && { providerUuid: row.provider }),
      before: { disabled: false },
      after: { disabled: true },
    });
  });
}
