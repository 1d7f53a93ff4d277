/**
 * What the operator does with measures by hand: takes a flowrule back, keeps a measure beyond its attack, announces what is
 * only proposed. Any account's; each is told for the audit log.
 */
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { heldByAccept } from '@levee/core/mitigation/held-by-accept.ts';
import { readAcceptingRules } from '../store/accepting-rules.ts';
import { budgetTurn } from '../store/budget-turn.ts';
import { markingText } from '../store/stored-kinds.ts';
import type { Executor } from './executor.ts';
import { type FlowruleRow, flowruleColumns } from './flowrule-row.ts';
import type { MitigationSettings } from './mitigate-attack.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';
import { countRoutes } from './standing-measures.ts';
import { waiveMeasure } from './write-measures.ts';

export interface OperatedFlowrule {
  readonly before: FlowruleRow;
  readonly after: FlowruleRow;
}

const lockFlowruleStatement = {
  name: 'operate_lock_flowrule',
  text: `select ${flowruleColumns} from flowrule r where r.uuid = $1 for update`,
};

const markStatement = {
  name: 'operate_mark_flowrule',
  text: `with ${markingText('flowrule', 'r.uuid = $1')} select 1 from marked`,
};

const keepFlowruleStatement = {
  name: 'operate_keep_flowrule',
  text: `with changed as (
      update flowrule r set origin = 'operator', expires_at = null,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from changed
    )
    select ${flowruleColumns} from changed r`,
};

const announceStatement = {
  name: 'operate_announce_flowrule',
  text: `with changed as (
      update flowrule r set held = null, held_by = null, held_rule = null, released = true,
        overrides_accept = r.overrides_accept or $2, judged_xid = $3::xid8, failure = null,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from changed
    )
    select ${flowruleColumns} from changed r`,
};

async function lockFlowrule(executor: Executor, uuid: string): Promise<FlowruleRow | undefined> {
  const [row] = await executor.rows<FlowruleRow>(lockFlowruleStatement, [uuid]);
  return row;
}

/** `fresh`: it was not marked already. */
export async function withdrawFlowrule(
  executor: Executor,
  uuid: string,
): Promise<Outcome<{ readonly before: FlowruleRow; readonly fresh: boolean }>> {
  const before = await lockFlowrule(executor, uuid);
  if (before === undefined) return refuse('not_found');
  if (!before.deleted) {
    await waiveMeasure(executor, 'flowrule', uuid);
    await executor.rows(markStatement, [uuid]);
  }
  return done({ before, fresh: !before.deleted });
}

export async function keepFlowrule(executor: Executor, uuid: string): Promise<Outcome<OperatedFlowrule>> {
  const before = await lockFlowrule(executor, uuid);
  if (before === undefined) return refuse('not_found');
  if (before.deleted) return markedAlready('flowrule');
  if (before.origin === 'operator') return done({ before, after: before });
  // Its attack has no more to do with it, and needs no second one.
  await waiveMeasure(executor, 'flowrule', uuid);
  const [after] = await executor.rows<FlowruleRow>(keepFlowruleStatement, [uuid]);
  if (after === undefined) throw new Error('a locked row is gone');
  return done({ before, after });
}

export async function announceFlowrule(
  executor: Executor,
  uuid: string,
  overridesAccept: boolean,
  { flowspecBudget }: MitigationSettings,
): Promise<Outcome<OperatedFlowrule>> {
  await executor.rows(budgetTurn, []);
  const before = await lockFlowrule(executor, uuid);
  if (before === undefined) return refuse('not_found');
  if (before.deleted) return markedAlready('flowrule');
  if (before.held === null) return done({ before, after: before });
  const parsed = parseFlowrule(JSON.parse(before.fields));
  if (!parsed.ok) throw new Error(`flowrule ${uuid} is stored with fields that do not parse`);
  const { rules, judgedXid } = await readAcceptingRules(executor.client, [parsed.canonical.dst]);
  const accepted = overridesAccept ? undefined : heldByAccept(parsed.flowrule, rules);
  if (accepted !== undefined) {
    const message = `override_accept: must be true: the flowrule would hit traffic that the rule ${accepted.ruleUuid} accepts`;
    return refuse('conflict', { field: '/override_accept', code: 'accepted_traffic', message });
  }
  const used = await countRoutes(executor, [uuid]);
  if (parsed.canonical.action !== 'blackhole' && used >= flowspecBudget) {
    const message = `${used} flowrules are announced, of at most ${flowspecBudget}: withdraw one first, or raise the budget`;
    return refuse('conflict', { field: '', code: 'budget', message });
  }
  const [after] = await executor.rows<FlowruleRow>(announceStatement, [uuid, overridesAccept, judgedXid]);
  if (after === undefined) throw new Error('a locked row is gone');
  return done({ before, after });
}

const lockRuleStatement = {
  name: 'operate_lock_rule',
  text: `select ${ruleColumns}, ${hitColumns} from firewall_rule r ${hitsJoin} where r.uuid = $1 for update of r`,
};

const keepRuleStatement = {
  name: 'operate_keep_rule',
  text: `with changed as (
      update firewall_rule r set origin = 'operator', expires_at = null,
        updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
        change_xid = pg_current_xact_id(), change_position = nextval('change_position')
      where r.uuid = $1 returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'firewall_rule', uuid from changed
    )
    select ${ruleColumns}, ${hitColumns} from changed r ${hitsJoin}`,
};

export interface KeptRule {
  readonly before: RuleRow;
  readonly after: RuleRow;
}

export async function keepMeasure(executor: Executor, uuid: string): Promise<Outcome<KeptRule>> {
  const [before] = await executor.rows<RuleRow>(lockRuleStatement, [uuid]);
  if (before === undefined) return refuse('not_found');
  if (before.origin === 'customer') {
    const message = 'The rule is no measure against an attack: it stays until whoever owns it deletes it.';
    return refuse('conflict', { field: '', code: 'no_measure', message });
  }
  if (before.deleted) return markedAlready('rule');
  if (before.origin === 'operator') return done({ before, after: before });
  await waiveMeasure(executor, 'firewall_rule', uuid);
  const [after] = await executor.rows<RuleRow>(keepRuleStatement, [uuid]);
  if (after === undefined) throw new Error('a locked row is gone');
  return done({ before, after });
}

function markedAlready(what: string) {
  const message = `The ${what} is marked for deletion and cannot be kept or announced any more.`;
  return refuse('conflict', { field: '', code: 'marked_for_deletion', message });
}
