/**
 * Takes firewall rules back to what they were before a change that was not confirmed. Runs inside the caller's
 * transaction; writes the change log's entries for what it changes.
 */
import type pg from 'pg';
import { auditedText } from './own-actions.ts';
import { markingText } from './stored-kinds.ts';

/** How to take one rule back to what it was before a change that awaits confirmation. */
export interface UndoEntry {
  readonly uuid: string;
  /** change_position that the change gave the rule; another one by now means a later change, which stands. */
  readonly position: number;
  /** Null: the change created the rule. */
  readonly before: UndoRule | null;
}

export interface UndoRule {
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  readonly sequence: number;
  readonly fields: Readonly<Record<string, unknown>>;
  /** RFC 3339, or null. */
  readonly expires_at: string | null;
  readonly created_at: string;
}

/** Taking back a creation: the rule goes the way of every deleted rule. */
const MARK = `with ${markingText('firewall_rule', 'r.uuid = $1 and r.change_position = $2', undefined, 'undo')} select 1 from marked`;

/**
 * Taking back a change or a deletion. The destination may have changed hands meanwhile: a rule is restored only where
 * its owner's subnet covers it, and, for a provider, where no user holds the addresses; but one that stands
 * and was not moved stays where it is, as any rule does that was there before the user.
 */
const PLACE = `place as (
    select s.subnet from subnet s
    where s.account_uuid = $3 and s.subnet >>= $4::cidr
      and (
        s.role <> 'provider' or exists (select from firewall_rule where uuid = $1 and dst = $4::cidr and subnet is not null)
        or not exists (select from subnet u where u.role = 'user' and u.subnet && $4::cidr)
      )
    limit 1
  )`;

const RESTORE = `with ${PLACE}, before as (
    select ${auditedText('fields', 'expires_at')} as told, deletion_marked_at is not null as deleted
    from firewall_rule where uuid = $1
  ), restored as (
    update firewall_rule r set dst = $4, subnet = place.subnet, fields = $5, expires_at = $6,
      deletion_marked_at = null, updated_at = date_trunc('milliseconds', now()),
      change_xid = pg_current_xact_id(), change_position = nextval('change_position')
    from place
    where r.uuid = $1 and r.change_position = $2 and r.owner_uuid = $3
    returning r.uuid, r.change_position, r.owner_uuid, r.provider_uuid, ${auditedText('r.fields', 'r.expires_at')} as told
  ), logged as (
    insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from restored
  ), told as (
    insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before, after)
    select 'undo', 'firewall_rule', r.uuid, r.owner_uuid, r.provider_uuid,
      case when not before.deleted then before.told end, r.told
    from restored r, before
  )
  select 1 from restored`;

/**
 * Returns how many rules were changed. Entries whose rule has been changed again since are left alone. A rule that
 * cannot be what it was, because its owner lost the addresses, does not stay as the unconfirmed change left it either:
 * it is marked for deletion. One that has expired meanwhile is restored and then found by the sweep.
 */
export async function applyUndo(client: pg.ClientBase, undo: readonly UndoEntry[]): Promise<number> {
  let changed = 0;
  // In one order everywhere: two transactions that undo the same rules wait for each other instead of deadlocking.
  for (const entry of undo.toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))) {
    if (await undoOne(client, entry)) changed++;
  }
  return changed;
}

async function undoOne(client: pg.ClientBase, { uuid, position, before }: UndoEntry): Promise<boolean> {
  const rows = async (name: string, text: string, values: unknown[]) =>
    (await client.query({ name, text, values })).rows.length > 0;
  if (before === null) return rows('undo_mark', MARK, [uuid, position]);
  const fields = JSON.stringify(before.fields);
  const values = [uuid, position, before.owner_uuid, before.fields.dst, fields, before.expires_at];
  if (await rows('undo_restore', RESTORE, values)) return true;
  return rows('undo_mark', MARK, [uuid, position]);
}
