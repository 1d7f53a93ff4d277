/**
 * Ends and forgets: webhooks that are deleted, whose account is going, whose key has ended or for which too much waits,
 * and deliveries that are over. Some rows a statement, so that no transaction is long. For the leader alone.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { LeadersTask } from '../../events/events.ts';
import { disableWebhook } from './deliveries.ts';

export const KEEP_DELIVERED_SECONDS = 24 * 3600;
export const KEEP_OTHERS_SECONDS = 3 * 24 * 3600;
/** More than that is never caught up with; cancelling them is one statement. */
export const MOST_WAITING = 50_000;
const AT_ONCE = 5_000;
const PRUNE_MILLISECONDS = 60_000;

const MARK_ORPHANS = `update webhook w set deletion_marked_at = now() from account a
  where a.uuid = w.owner_uuid and a.deletion_marked_at is not null and w.deletion_marked_at is null`;

/** Statements that are repeated until there is less to do than they do at once. */
const IN_PARTS: readonly { readonly text: string; readonly values?: readonly unknown[] }[] = [
  {
    text: `delete from webhook_delivery where uuid in (
        select d.uuid from webhook w join webhook_delivery d on d.webhook_uuid = w.uuid
        where w.deletion_marked_at is not null limit ${AT_ONCE})`,
  },
  {
    text: `delete from webhook w where w.deletion_marked_at is not null
      and not exists (select from webhook_delivery d where d.webhook_uuid = w.uuid)`,
  },
  {
    // Made, or put off, while the webhook was being disabled.
    text: `update webhook_delivery set state = 'cancelled', next_attempt_at = null, ended_at = clock_timestamp()
      where uuid in (
        select d.uuid from webhook w join webhook_delivery d on d.webhook_uuid = w.uuid and d.state = 'pending'
        where w.disabled limit ${AT_ONCE})`,
  },
  {
    text: `delete from webhook_delivery where uuid in (
        select uuid from webhook_delivery
        where ended_at < now() - make_interval(secs => case state when 'delivered' then $1::float8 else $2::float8 end)
        order by ended_at limit ${AT_ONCE})`,
    values: [KEEP_DELIVERED_SECONDS, KEEP_OTHERS_SECONDS],
  },
];

const KEY_ENDED = `select w.uuid::text as uuid, k.revoked_at is not null as revoked from webhook w
  join api_key k on k.uuid = w.key_uuid
  where not w.disabled and w.deletion_marked_at is null
    and (k.revoked_at is not null or k.expires_at <= clock_timestamp())`;

const TOO_MANY = `select w.uuid::text as uuid from webhook w
  where not w.disabled and w.deletion_marked_at is null and $1::int8 < (
    select count(*) from (select from webhook_delivery where webhook_uuid = w.uuid and state = 'pending' limit $1::int8 + 1) d)`;

export interface ForgetOptions {
  readonly everyMilliseconds?: number | undefined;
  readonly mostWaiting?: number | undefined;
}

export async function forget(
  pool: pg.Pool,
  signal: AbortSignal,
  { mostWaiting = MOST_WAITING }: Pick<ForgetOptions, 'mostWaiting'> = {},
): Promise<void> {
  const ended = await pool.query<{ uuid: string; revoked: boolean }>(KEY_ENDED);
  for (const { uuid, revoked } of ended.rows) {
    await disableWebhook(pool, uuid, `The API key that it was set with ${revoked ? 'was revoked' : 'has expired'}.`);
  }
  const { rows } = await pool.query<{ uuid: string }>(TOO_MANY, [mostWaiting]);
  for (const { uuid } of rows) await disableWebhook(pool, uuid, `More than ${mostWaiting} deliveries waited for it.`);
  await pool.query(MARK_ORPHANS);
  for (const { text, values = [] } of IN_PARTS) {
    for (let more = true; more && !signal.aborted; ) {
      more = ((await pool.query(text, [...values])).rowCount ?? 0) === AT_ONCE;
    }
  }
}

export function createForgetting(pool: pg.Pool, options: ForgetOptions = {}): LeadersTask {
  return {
    name: 'forgetting deliveries to webhooks',
    async run({ signal }) {
      while (!signal.aborted) {
        await forget(pool, signal, options);
        await delay(options.everyMilliseconds ?? PRUNE_MILLISECONDS, undefined, { signal }).catch(() => {});
      }
    },
  };
}
