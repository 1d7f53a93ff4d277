/**
 * What a new change means for earlier ones that still await confirmation. A plain change is the owner's word: what it
 * touched is not undone any more. One that awaits confirmation itself takes the undoing over, so that without a
 * confirmation everything returns to the last state that was confirmed.
 *
 * Of a single rule nothing is to be done after a plain change: it has another position then, and undoing leaves it.
 * Locks are taken rules first, confirmations after them, here as in the sweep.
 */
import type { UndoEntry } from '../store/undo.ts';
import type { Executor } from './executor.ts';

const openCondition = 'c.owner_uuid = $1 and c.confirmed_at is null and c.rolled_back_at is null';

const withdrawText = (touches: string) => `update confirmation c
    set undo = coalesce((select json_agg(e) from json_array_elements(c.undo) e where not ${touches}), '[]'::json)
    where ${openCondition} and exists (select from json_array_elements(c.undo) e where ${touches})`;

/** Where an entry's rule was before the change, or where it is now. */
const touching = (operator: string) => `(
      coalesce((e->'before'->'fields'->>'dst')::cidr ${operator} any($2::cidr[]), false)
      or exists (select from firewall_rule r where r.uuid = (e->>'uuid')::uuid and r.dst ${operator} any($2::cidr[]))
    )`;

const withdrawSetStatement = { name: 'undo_withdraw_set', text: withdrawText(touching('=')) };
const withdrawSpaceStatement = { name: 'undo_withdraw_space', text: withdrawText(touching('&&')) };

/** The rules with exactly this destination are as the owner wants them. */
export async function withdrawSet(executor: Executor, ownerUuid: string, dst: string): Promise<void> {
  await executor.rows(withdrawSetStatement, [ownerUuid, [dst]]);
}

/** The owner lost these addresses: nothing comes back there, whoever holds them later. */
export async function withdrawSpace(executor: Executor, ownerUuid: string, subnets: readonly string[]): Promise<void> {
  await executor.rows(withdrawSpaceStatement, [ownerUuid, subnets]);
}

export interface Touched {
  /** The entry that undoes this change alone. */
  readonly entry: UndoEntry;
  /** The rule's position before this change; undefined: it did not exist. */
  readonly positionBefore: number | undefined;
}

interface OpenRow {
  readonly change_uuid: string;
  readonly undo: readonly UndoEntry[];
  /** By uuid: where the rule stands now. */
  readonly rules: Readonly<Record<string, { readonly position: number; readonly within: boolean }>> | null;
}

const openStatement = {
  name: 'undo_open',
  text: `select c.change_uuid::text, c.undo, (
      select json_object_agg(r.uuid, json_build_object('position', r.change_position,
        'within', coalesce(r.dst = $2::cidr, false)))
      from json_array_elements(c.undo) e join firewall_rule r on r.uuid = (e->>'uuid')::uuid
    ) as rules
    from confirmation c where ${openCondition}
    order by c.created_at, c.change_uuid for update`,
};

export interface Inherited {
  readonly undo: readonly UndoEntry[];
  /** Changes whose undoing is part of it now. */
  readonly superseded: readonly string[];
}

/**
 * How to undo a change together with those before it that it builds on: that touched a rule which it touched, or, when
 * it replaced the rules of a destination, anything there. For one rule the older `before` wins.
 */
export async function inheritUndo(
  executor: Executor,
  ownerUuid: string,
  touched: readonly Touched[],
  dst: string | undefined,
): Promise<Inherited> {
  const open = await executor.rows<OpenRow>(openStatement, [ownerUuid, dst ?? null]);
  const own = new Map(touched.map((each) => [each.entry.uuid, each]));
  const undo = new Map(touched.map(({ entry }) => [entry.uuid, entry]));
  const superseded: string[] = [];
  for (const { change_uuid, undo: entries, rules } of open) {
    // A rule that was changed plainly meanwhile stays as that change left it.
    const live = entries.filter(({ uuid, position }) => {
      const mine = own.get(uuid);
      return position === (mine === undefined ? rules?.[uuid]?.position : mine.positionBefore);
    });
    const builtOn = live.some(
      ({ uuid, before }) =>
        own.has(uuid) || (dst !== undefined && (before?.fields.dst === dst || rules?.[uuid]?.within === true)),
    );
    if (!builtOn) continue;
    superseded.push(change_uuid);
    for (const entry of live) {
      const position = own.get(entry.uuid)?.entry.position ?? entry.position;
      undo.set(entry.uuid, { ...entry, position });
    }
  }
  return { undo: [...undo.values()], superseded };
}
