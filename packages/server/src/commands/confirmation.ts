/**
 * Changes that undo themselves unless they are confirmed: writes how to undo one, in the change's own transaction,
 * and takes the confirmation. The sweep carries the undoing out.
 */
import type { UndoRule } from '../store/undo.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { inheritUndo, withdrawSet } from './pending-undo.ts';
import type { RuleRow } from './rule-row.ts';

export interface Confirmation {
  readonly changeUuid: string;
  readonly withinSeconds: number;
}

/** `position`: the change that would be undone. `before` null: it created the rule. */
export interface Undo {
  readonly uuid: string;
  readonly position: number;
  readonly before: RuleRow | null;
}

const saveStatement = {
  name: 'confirmation_save',
  text: `with superseded as (
      update confirmation set rolled_back_at = date_trunc('milliseconds', now()), superseded_by = $1
      where change_uuid = any($5::uuid[])
    )
    insert into confirmation (change_uuid, owner_uuid, deadline, undo)
    values ($1, $2, now() + make_interval(secs => $3), $4) returning deadline`,
};

/**
 * To be called after the change, in its transaction. `dst`: the change said what the whole set of this destination is.
 * The deadline; undefined when no confirmation was asked for.
 */
export async function saveConfirmation(
  executor: Executor,
  caller: Caller,
  confirmation: Confirmation | undefined,
  undo: readonly Undo[],
  dst?: string,
): Promise<Date | undefined> {
  if (confirmation === undefined) {
    if (dst !== undefined) await withdrawSet(executor, caller.accountUuid, dst);
    return undefined;
  }
  const touched = undo.map(({ uuid, position, before }) => ({
    entry: { uuid, position, before: before === null ? null : stored(before) },
    positionBefore: before?.change_position,
  }));
  const inherited = await inheritUndo(executor, caller.accountUuid, touched, dst);
  const [row] = await executor.rows<{ deadline: Date }>(saveStatement, [
    confirmation.changeUuid,
    caller.accountUuid,
    confirmation.withinSeconds,
    JSON.stringify(inherited.undo),
    inherited.superseded,
  ]);
  return row?.deadline;
}

function stored(row: RuleRow): UndoRule {
  return {
    owner_uuid: row.owner_uuid,
    provider_uuid: row.provider_uuid,
    sequence: row.sequence,
    fields: JSON.parse(row.fields) as Readonly<Record<string, unknown>>,
    expires_at: row.expires_ms === null ? null : new Date(row.expires_ms).toISOString(),
    created_at: new Date(row.created_ms).toISOString(),
  };
}

const confirmStatement = {
  name: 'confirmation_confirm',
  text: `with found as (
      select change_uuid, confirmed_at, rolled_back_at, superseded_by, deadline, undo from confirmation
      where change_uuid = $1 and owner_uuid = $2
      for update
    ), confirmed as (
      update confirmation c set confirmed_at = date_trunc('milliseconds', now()) from found
      where c.change_uuid = found.change_uuid and found.confirmed_at is null and found.rolled_back_at is null
        and found.deadline > now()
      returning c.change_uuid, c.confirmed_at
    )
    select coalesce(confirmed.confirmed_at, found.confirmed_at) as confirmed_at,
      found.superseded_by::text as superseded_by, confirmed.change_uuid is not null as fresh,
      array(select e->>'uuid' from json_array_elements(found.undo) e) as rules
    from found left join confirmed using (change_uuid)`,
};

interface ConfirmedRow {
  readonly confirmed_at: Date | null;
  readonly superseded_by: string | null;
  readonly fresh: boolean;
  readonly rules: readonly string[];
}

export interface ConfirmedChange {
  readonly confirmedAt: Date;
  /** False: it was confirmed before. */
  readonly fresh: boolean;
  /** Of the rules that stay as the change left them. */
  readonly ruleUuids: readonly string[];
}

/** Confirming twice is no error. */
export async function confirmChange(
  executor: Executor,
  caller: Caller,
  changeUuid: string,
): Promise<Outcome<ConfirmedChange>> {
  const [found] = await executor.rows<ConfirmedRow>(confirmStatement, [changeUuid, caller.accountUuid]);
  if (found === undefined) return refuse('not_found');
  if (found.confirmed_at !== null) {
    return done({ confirmedAt: found.confirmed_at, fresh: found.fresh, ruleUuids: found.rules });
  }
  if (found.superseded_by !== null) {
    return refuse('conflict', {
      field: '',
      code: 'superseded',
      message: `A later change took this one's place, and stands or falls with it: confirm ${found.superseded_by}.`,
    });
  }
  return refuse('conflict', {
    field: '',
    code: 'too_late',
    message: 'The time to confirm this change is over: it has been undone. Send the change again.',
  });
}
