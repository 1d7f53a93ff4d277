/**
 * From events to deliveries: one for each event and webhook that chose it and may see it. Follows the events at its own
 * pace, some at a time, with a place of its own: the events' transactions know nothing of webhooks and never wait for
 * them. For the leader alone.
 */
import type pg from 'pg';
import { Alarm } from '../../events/alarm.ts';
import type { LeadersTask } from '../../events/events.ts';
import { isLive } from './deliveries.ts';

/** Webhooks that have something to send from now on. */
export interface Made {
  readonly webhook: string;
  readonly account: string;
  readonly url: string;
}

/** An account has 20 webhooks at most, and an event three accounts that may see it: a statement takes 0.2 s at worst. */
const EVENTS_AT_ONCE = 100;
/** In case nobody says that there are events. */
const LOOK_MILLISECONDS = 30_000;

const MAKE = `with place as (
    select sequence from webhook_place for update
  ), told as (
    select sequence, name, owner_uuid, provider_uuid from event
    where sequence > (select sequence from place) order by sequence limit ${EVENTS_AT_ONCE}
  ), moved as (
    update webhook_place set sequence = (select max(sequence) from told) where exists (select from told)
  ), made as (
    insert into webhook_delivery (uuid, webhook_uuid, name, event_sequence, event_id)
    select gen_random_uuid(), w.uuid, e.name, e.sequence, l.epoch || '-' || e.sequence
    from told e cross join event_log l cross join lateral (
      select * from webhook where role = 'operator'
      union all select * from webhook where role = 'provider' and owner_uuid = e.provider_uuid
      union all select * from webhook where role = 'user' and owner_uuid = e.owner_uuid
    ) w
    where w.after_sequence < e.sequence and ${isLive}
      and w.events && array['*', split_part(e.name, '.', 1) || '.*', e.name]
    order by e.sequence
    on conflict (webhook_uuid, event_sequence) do nothing
    returning webhook_uuid
  )
  select (select count(*) from told) as events, array(
    select json_build_object('webhook', w.uuid, 'account', w.owner_uuid, 'url', w.url)
    from webhook w where w.uuid in (select webhook_uuid from made)
  ) as webhooks`;

/** Makes what is missing for the next events. `more`: there may be further ones. */
export async function makeDeliveries(
  pool: Pick<pg.Pool, 'query'>,
): Promise<{ readonly webhooks: readonly Made[]; readonly more: boolean }> {
  const { rows } = await pool.query<{ events: number; webhooks: Made[] }>({
    name: 'webhook_deliveries_make',
    text: MAKE,
  });
  const { events = 0, webhooks = [] } = rows[0] ?? {};
  return { webhooks, more: events === EVENTS_AT_ONCE };
}

export function createFanOut(pool: Pick<pg.Pool, 'query'>, made: (webhooks: readonly Made[]) => void): LeadersTask {
  const alarm = new Alarm();
  return {
    name: 'deliveries to webhooks',
    news: alarm.ring,
    async run({ signal }) {
      while (!signal.aborted) {
        const { webhooks, more } = await makeDeliveries(pool);
        made(webhooks);
        if (!more) await alarm.sleep(Date.now() + LOOK_MILLISECONDS, signal);
      }
    },
  };
}
