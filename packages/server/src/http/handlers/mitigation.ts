/** From the operator's requests about measures to commands and answers. Decides nothing itself. */
import type pg from 'pg';
import { objectEntry } from '../../commands/audit.ts';
import { type FlowruleRow, flowruleChunks } from '../../commands/flowrule-row.ts';
import type { MitigationSettings } from '../../commands/mitigate-attack.ts';
import {
  announceFlowrule,
  keepFlowrule,
  keepMeasure,
  type OperatedFlowrule,
  withdrawFlowrule,
} from '../../commands/operate-measures.ts';
import { type Outcome, refuse } from '../../commands/outcome.ts';
import type { ChangePlace } from '../../commands/stored-row.ts';
import type { Cursor } from '../../store/cursor.ts';
import { type Call, type Handler, membersOf, type WriteHandler, type Wrote } from '../call.ts';
import { renderFlowrule } from '../flowrule-answer.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import type { AppliedStates } from '../object-answer.ts';
import { renderRule } from '../rule-answer.ts';
import { isUuid } from '../uuid-text.ts';

export interface MitigationServices {
  readonly pool: pg.Pool;
  readonly states: AppliedStates;
  /** A BGP speaker is configured. */
  readonly hasSpeaker: boolean;
  readonly mitigation: MitigationSettings;
}

export function mitigationHandlers({
  pool,
  states,
  hasSpeaker,
  mitigation,
}: MitigationServices): Record<string, Handler> {
  const listing: Listing<FlowruleRow> = {
    chunks: (scope) => flowruleChunks(pool, scope),
    render: (row) => renderFlowrule(row, hasSpeaker),
  };
  const operated = (outcome: Outcome<OperatedFlowrule>): Wrote => {
    if (!outcome.ok) return outcome;
    const { before, after } = outcome.value;
    const audit = before === after ? [] : [objectEntry('flowrule', before, after)];
    const render = () => renderFlowrule(after, hasSpeaker).text;
    return { ok: true, value: { change: cursorOf(after), render, audit } };
  };
  return {
    listAllFlowrules: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) => answerList(listing, call, 'everyone', filter),
    },
    withdrawFlowrule: writing(async (executor, uuid) => {
      const outcome = await withdrawFlowrule(executor, uuid);
      if (!outcome.ok) return outcome;
      const { before, fresh } = outcome.value;
      const message = 'The flowrule is marked for deletion.';
      const body = JSON.stringify({ uuid, state: 'marked_for_deletion', message });
      const audit = fresh ? [objectEntry('flowrule', before, undefined)] : [];
      return { ok: true, value: { render: () => body, audit } };
    }),
    keepFlowrule: writing(async (executor, uuid) => operated(await keepFlowrule(executor, uuid))),
    announceFlowrule: writing(async (executor, uuid, call) => {
      const overrides = membersOf(call.body).override_accept === true;
      return operated(await announceFlowrule(executor, uuid, overrides, mitigation));
    }),
    keepMeasure: writing(async (executor, uuid) => {
      const outcome = await keepMeasure(executor, uuid);
      if (!outcome.ok) return outcome;
      const { before, after } = outcome.value;
      const audit = before === after ? [] : [objectEntry('firewall_rule', before, after)];
      const render = () => renderRule(after, states).text;
      return { ok: true, value: { change: cursorOf(after), uuids: [after.uuid], render, audit } };
    }),
  };
}

type Executor = Parameters<WriteHandler['run']>[1];

/** On the object that the path names. */
function writing(run: (executor: Executor, uuid: string, call: Call) => Promise<Wrote>): Handler {
  return {
    write: {
      async run(call, executor) {
        const uuid = (call.params.uuid ?? '').toLowerCase();
        return isUuid(uuid) ? run(executor, uuid, call) : refuse('not_found');
      },
    },
  };
}

function cursorOf(row: ChangePlace): Cursor {
  return { xid: row.change_xid, position: row.change_position };
}
