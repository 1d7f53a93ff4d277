/**
 * Deliveries as rows: made in the transaction that writes the events, taken when they are due, ended or put off by what an
 * attempt gave. Owns these statements; sends nothing.
 */
import type pg from 'pg';
import { recordOwnAction } from '../../store/own-actions.ts';
import { inTransaction } from '../../store/transaction.ts';
import type { Attempt } from './send.ts';

/** One for each new event and webhook that chose it and may see it. Those whose account is going get none. */
const MAKE = `insert into webhook_delivery (uuid, webhook_uuid, name, event_sequence, event_id)
  select gen_random_uuid(), w.uuid, e.name, e.sequence, l.epoch || '-' || e.sequence
  from event e cross join event_log l cross join lateral (
    select * from webhook where role = 'operator'
    union all select * from webhook where role = 'provider' and owner_uuid = e.provider_uuid
    union all select * from webhook where role = 'user' and owner_uuid = e.owner_uuid
  ) w
  where e.sequence >= $1 and not w.disabled
    and w.events && array['*', split_part(e.name, '.', 1) || '.*', e.name]
    and exists (select from account a where a.uuid = w.owner_uuid and a.deletion_marked_at is null)
  order by e.sequence
  returning webhook_uuid::text as webhook`;

/** In the transaction that wrote the events from `sequence` on. Returns the webhooks that have something to do. */
export async function makeDeliveries(client: Pick<pg.ClientBase, 'query'>, sequence: number): Promise<Set<string>> {
  const { rows } = await client.query<{ webhook: string }>({
    name: 'webhook_deliveries_make',
    text: MAKE,
    values: [sequence],
  });
  return new Set(rows.map(({ webhook }) => webhook));
}

export interface DueDelivery {
  readonly uuid: string;
  readonly webhook: string;
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
const TAKE = `select d.uuid::text as uuid, w.uuid::text as webhook, w.url,
    case when w.former_secret_until > now() then array[w.secret, w.former_secret] else array[w.secret] end as secrets,
    d.name, d.event_id, round(date_part('epoch', coalesce(e.at, d.created_at)) * 1000) as at_ms,
    coalesce(e.data, d.test_data)::text as data, d.round_attempts,
    date_part('epoch', clock_timestamp() - d.round_at) as round_seconds,
    date_part('epoch', clock_timestamp() - w.failing_since) as failing_seconds
  from unnest($1::uuid[], $2::int[]) q (webhook, slots)
  join webhook w on w.uuid = q.webhook and not w.disabled
  join account a on a.uuid = w.owner_uuid and a.deletion_marked_at is null
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

const NEXT = `select d.webhook_uuid::text as webhook,
    greatest(0, date_part('epoch', min(d.next_attempt_at) - clock_timestamp()) * 1000) as milliseconds
  from webhook_delivery d
  join webhook w on w.uuid = d.webhook_uuid and not w.disabled
  join account a on a.uuid = w.owner_uuid and a.deletion_marked_at is null
  where d.state = 'pending' and d.uuid <> all($2::uuid[]) and ($1::uuid[] is null or d.webhook_uuid = any($1))
  group by d.webhook_uuid`;

/** Webhook → milliseconds until its next delivery is due. `webhooks` undefined: of all. */
export async function nextDue(
  pool: Pick<pg.Pool, 'query'>,
  webhooks: readonly string[] | undefined,
  underWay: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ webhook: string; milliseconds: number }>(NEXT, [webhooks ?? null, underWay]);
  return new Map(rows.map(({ webhook, milliseconds }) => [webhook, milliseconds]));
}

/** Those that failed when they were last tried, from before this replica leads. */
export async function loadFailing(pool: Pick<pg.Pool, 'query'>): Promise<readonly string[]> {
  const { rows } = await pool.query<{ uuid: string }>(
    'select uuid::text as uuid from webhook where failing_since is not null and not disabled',
  );
  return rows.map(({ uuid }) => uuid);
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
  where w.uuid = $1 and not w.disabled and a.uuid = w.owner_uuid
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

export const KEEP_DELIVERED_SECONDS = 24 * 3600;
export const KEEP_OTHERS_SECONDS = 3 * 24 * 3600;
const AT_ONCE = 5_000;

const PRUNE = `delete from webhook_delivery where uuid in (
    select uuid from webhook_delivery
    where ended_at < now() - make_interval(secs => case state when 'delivered' then $1::float8 else $2::float8 end)
    order by ended_at limit ${AT_ONCE}
  ) returning 1`;

/** That streams show no more, and no delivery either. */
const PRUNE_EVENTS = `delete from event e where e.sequence <= (select floor from event_log)
    and not exists (select from webhook_delivery d where d.event_sequence = e.sequence)`;

/** Made while the webhook was being disabled. */
const CANCEL_LATE = `update webhook_delivery d
  set state = 'cancelled', next_attempt_at = null, ended_at = clock_timestamp()
  from webhook w where w.uuid = d.webhook_uuid and w.disabled and d.state = 'pending'`;

/** Forgets old deliveries, and webhooks whose account is going. */
export async function pruneDeliveries(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  await pool.query(CANCEL_LATE);
  await pool.query(
    'delete from webhook w using account a where a.uuid = w.owner_uuid and a.deletion_marked_at is not null',
  );
  for (let more = true; more; ) {
    const { rows } = await pool.query(PRUNE, [KEEP_DELIVERED_SECONDS, KEEP_OTHERS_SECONDS]);
    more = rows.length === AT_ONCE;
  }
  await pool.query(PRUNE_EVENTS);
}
