/**
 * The kinds of stored objects that are marked for deletion and go later: what marking means for each, and what holds a
 * marked row back. The one place that says so, for commands and the sweep alike; runs no statement itself.
 *
 * A kind's name is that of its table and of its entries in the change log.
 */

import { auditedText, type OwnAction } from './own-actions.ts';

export type StoredKindName = 'firewall_rule' | 'filter' | 'tunnel' | 'flowrule';

export interface StoredKind {
  readonly name: StoredKindName;
  /** The column by which the row holds its owner's grant of the destination, until marking gives it back. */
  readonly grant?: 'subnet' | 'prefix';
  /** A table of rows that go with the mark, so that what they hold is free at once, and their column of the object. */
  readonly released?: { readonly table: string; readonly column: string };
  /** Whether the row goes as soon as no router holds the object; otherwise its own reconciler removes it. */
  readonly heldByRouters: boolean;
  /** More that keeps a marked row, which is called `r`. */
  readonly keptWhile?: string;
}

/** The rows of rules that a change deleted while it awaits confirmation stay, so that undoing it always finds them. */
const DELETED_BY_OPEN_CHANGE = `exists (
    select from confirmation c cross join json_array_elements(c.undo) e
    where c.confirmed_at is null and c.rolled_back_at is null
      and (e->>'uuid')::uuid = r.uuid and (e->>'position')::int8 = r.change_position
  )`;

export const storedKinds: Readonly<Record<StoredKindName, StoredKind>> = {
  firewall_rule: {
    name: 'firewall_rule',
    grant: 'subnet',
    heldByRouters: true,
    keptWhile: DELETED_BY_OPEN_CHANGE,
  },
  filter: { name: 'filter', grant: 'subnet', heldByRouters: true },
  tunnel: {
    name: 'tunnel',
    released: { table: 'tunnel_subnet', column: 'tunnel_uuid' },
    heldByRouters: true,
  },
  flowrule: { name: 'flowrule', grant: 'prefix', heldByRouters: false },
};

/**
 * Text for a `with` clause: marks rows (`r`) for which `where` holds and that are not marked yet, writes the change log,
 * and leaves `marked (uuid, change_xid, change_position)`. `from`: an earlier part that `where` joins. `action`: the service
 * does it of its own, and it is that in the audit log; what an account does its command tells.
 */
export function markingText(name: StoredKindName, where: string, from?: string, action?: OwnAction): string {
  const { grant, released } = storedKinds[name];
  const release =
    released === undefined
      ? ''
      : `, released as (delete from ${released.table} s using marked m where s.${released.column} = m.uuid)`;
  return `marked as (
      update ${name} r set deletion_marked_at = date_trunc('milliseconds', now()),
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),${grant === undefined ? '' : ` ${grant} = null,`}
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      ${from === undefined ? '' : `from ${from} `}where (${where}) and r.deletion_marked_at is null
      returning r.uuid, r.change_xid, r.change_position${action === undefined ? '' : toldColumns}
    )${release}, logged as (
      insert into change (position, kind, object_uuid) select change_position, '${name}', uuid from marked
    )${action === undefined ? '' : toldText(name, action)}`;
}

const toldColumns = `, r.owner_uuid, r.provider_uuid, ${auditedText('r.fields', 'r.expires_at')} as told`;

function toldText(name: StoredKindName, action: OwnAction): string {
  return `, told as (
      insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before)
      select '${action}', '${name}', uuid, owner_uuid, provider_uuid, told from marked
    )`;
}
