/**
 * Changes fields of a firewall rule in place: the row keeps its uuid and its order of creation, and no moment exists
 * in which neither the old nor the new rule stands. Only the owner changes a rule.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { changeFieldNames } from '@levee/contract/schemas/firewall-rule.ts';
import { parsePatch } from '@levee/core/firewall/parse.ts';
import type { CanonicalRule } from '@levee/core/firewall/wire.ts';
import type { Caller } from './caller.ts';
import { type Confirmation, saveConfirmation } from './confirmation.ts';
import type { CreatedRule } from './create-rule.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { findPlace, notAllowed } from './own-space.ts';
import { mayRead } from './read-rules.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';

export interface RuleChange {
  readonly uuid: string;
  /** The wire's fields; null takes one away. */
  readonly fields: unknown;
  /** Undefined: stays. */
  readonly expiresAt: Date | null | undefined;
  readonly confirm: Confirmation | undefined;
  /** What is wrong beside the rule's own fields: refused together with what is wrong with those. */
  readonly problems: readonly Problem[];
}

export interface ChangedRule extends CreatedRule {
  readonly before: RuleRow;
}

const lockStatement = {
  name: 'rule_lock',
  text: `select ${ruleColumns}, r.subnet::text as subnet from firewall_rule r where r.uuid = $1 for update`,
};

const changeStatement = {
  name: 'rule_change',
  text: `with changed as (
      update firewall_rule set dst = $2, subnet = $3, fields = $4, expires_at = $5,
        updated_at = greatest(updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from changed
    )
    select ${ruleColumns}, ${hitColumns} from changed r ${hitsJoin}`,
};

export async function changeRule(
  executor: Executor,
  caller: Caller,
  change: RuleChange,
): Promise<Outcome<ChangedRule>> {
  const [before] = await executor.rows<RuleRow & { subnet: string | null }>(lockStatement, [change.uuid]);
  if (before === undefined || !mayRead(caller, before)) return refuse('not_found');
  if (before.owner_uuid !== caller.accountUuid) {
    return refuse('ip_not_allowed', {
      field: '',
      code: 'not_owner',
      message: "The rule belongs to one of the provider's users: a provider may read and delete it, not change it.",
    });
  }
  if (before.origin !== 'customer') {
    return refuse('conflict', {
      field: '',
      code: 'measure',
      message: `The rule is a measure against the attack ${before.attack_uuid} and cannot be changed; it can be deleted.`,
    });
  }
  if (before.deleted || before.subnet === null) {
    return refuse('conflict', {
      field: '',
      code: 'marked_for_deletion',
      message: 'The rule is marked for deletion and cannot be changed any more; create a new one.',
    });
  }
  const stored = JSON.parse(before.fields) as CanonicalRule;
  const identity = { uuid: before.uuid, sequence: before.sequence };
  const parsed = parsePatch(stored, change.fields, identity, changeFieldNames);
  const wrong = parsed.ok ? change.problems : [...parsed.problems, ...change.problems];
  if (!parsed.ok || wrong.length > 0) return refuse('validation_failed', ...wrong);
  const { canonical } = parsed;
  const moved = canonical.dst !== stored.dst;
  const place = moved ? (await findPlace(executor, caller, canonical.dst))?.subnet : before.subnet;
  if (place === undefined) return refuse('ip_not_allowed', notAllowed('/dst', canonical.dst, caller));
  const expiresAt = change.expiresAt === undefined ? dateOf(before.expires_ms) : change.expiresAt;
  const values = [before.uuid, canonical.dst, place, JSON.stringify(canonical), expiresAt];
  const [row] = await executor.rows<RuleRow>(changeStatement, values);
  if (row === undefined) throw new Error('a locked row is gone');
  const confirmBy = await saveConfirmation(executor, caller, change.confirm, [
    { uuid: row.uuid, position: row.change_position, before },
  ]);
  return done({ row, confirmBy, before });
}

function dateOf(milliseconds: number | null): Date | null {
  return milliseconds === null ? null : new Date(milliseconds);
}
