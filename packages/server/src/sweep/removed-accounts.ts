/**
 * Removes the accounts of deleted users when no object of theirs is left anywhere. What is history stays: attacks on
 * them, and flowrules that came of those, become their provider's. Keys, unconfirmed changes and quotas go with the
 * account by their foreign keys, webhooks before it (backends/webhook/forget.ts); that nothing else refers to an account
 * the test sees to.
 */
import type pg from 'pg';
import { inTransaction } from '../store/transaction.ts';

/** Whose rows keep the account: what routers and servers may still hold, and what others remove in parts. */
export const KEEPING_TABLES = ['firewall_rule', 'filter', 'tunnel', 'rdns_record', 'subnet', 'webhook'] as const;
/** Whose rows become the provider's. */
export const HISTORY_TABLES = ['attack', 'flowrule'] as const;

const kept = KEEPING_TABLES.map((table) => {
  const column = table === 'subnet' ? 'account_uuid' : 'owner_uuid';
  return `and not exists (select from ${table} r where r.${column} = a.uuid)`;
}).join('\n      ');

const NEXT = `select a.uuid::text, a.provider_uuid::text from account a
    where a.role = 'user' and a.deletion_marked_at is not null
      ${kept}
    order by a.deletion_marked_at limit 1 for update skip locked`;

/** The entries say that there is something to look at; what the routers and the speaker have is the same as before. */
const inherit = (table: string) => `with moved as (
      update ${table} set owner_uuid = $2 where owner_uuid = $1 returning uuid
    )
    insert into change (kind, object_uuid) select '${table}', uuid from moved returning 1`;

/** One account a transaction. Returns how many entries the change log has more. */
export async function removeAccounts(pool: pg.Pool): Promise<number> {
  let entries = 0;
  for (;;) {
    const made = await removeNext(pool);
    if (made === undefined) return entries;
    entries += made;
  }
}

/** Undefined: there is none to remove. */
function removeNext(pool: pg.Pool): Promise<number | undefined> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ uuid: string; provider_uuid: string }>({
      name: 'sweep_account_next',
      text: NEXT,
    });
    const next = rows[0];
    if (next === undefined) return undefined;
    let entries = 0;
    for (const table of HISTORY_TABLES) {
      const values = [next.uuid, next.provider_uuid];
      entries += (await client.query({ name: `sweep_account_${table}`, text: inherit(table), values })).rows.length;
    }
    await client.query({ name: 'sweep_account', text: 'delete from account where uuid = $1', values: [next.uuid] });
    return entries;
  });
}
