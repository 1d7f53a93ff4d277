/** From requests about flowrules to rows, and from rows to answers. Decides nothing itself. */
import type pg from 'pg';
import { executorOf } from '../../commands/executor.ts';
import { type FlowruleRow, flowruleChunks, readFlowrule } from '../../commands/flowrule-row.ts';
import { refuse } from '../../commands/outcome.ts';
import type { Call, Handler } from '../call.ts';
import { renderFlowrule } from '../flowrule-answer.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import { isUuid } from '../uuid-text.ts';

export interface FlowruleServices {
  readonly pool: pg.Pool;
  /** A BGP speaker is configured. */
  readonly hasSpeaker: boolean;
}

export function flowruleHandlers({ pool, hasSpeaker }: FlowruleServices): Record<string, Handler> {
  const listing: Listing<FlowruleRow> = {
    chunks: (scope) => flowruleChunks(pool, scope),
    render: (row) => renderFlowrule(row, hasSpeaker),
  };
  return {
    listFlowrules: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { ownerUuid: call.caller.accountUuid }, filter),
    },
    listProviderFlowrules: {
      judge: judgeList,
      read: (call: Call, filter: ListFilter) =>
        answerList(listing, call, { providerUuid: call.caller.accountUuid }, filter),
    },
    readFlowrule: {
      async read(call: Call) {
        const uuid = call.params.uuid ?? '';
        if (!isUuid(uuid)) return refuse('not_found');
        const row = await readFlowrule(executorOf(pool), call.caller.accountUuid, uuid);
        if (row === undefined) return refuse('not_found');
        return { ok: true, answer: { body: `[${renderFlowrule(row, hasSpeaker).text}]` } };
      },
    },
  };
}
