/** Requests for operations on measures against attacks. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';
import { mitigated } from '../mitigated.ts';

export function mitigationCases({ api, world, next, byOperator }: CaseKit): OperationCases {
  /** Of the user's, and no other case's. */
  const address = () => `2001:db8:7:e::${next().toString(16)}`;
  const flowrule = async () => ({ uuid: (await mitigated(api, address())).flowrule });
  const withdrawn = async () => {
    const params = await flowrule();
    assert.equal((await api.call('withdrawFlowrule', params, { key: api.operatorKey })).status, 200);
    return params;
  };
  return {
    readSpeaker: { good: () => byOperator({}), bad: {} },
    listAllFlowrules: { good: () => byOperator({}), bad: {} },
    withdrawFlowrule: { good: async () => byOperator({}, await flowrule()), bad: {} },
    keepFlowrule: {
      good: async () => byOperator({}, await flowrule()),
      bad: { conflict: async () => byOperator({}, await withdrawn()) },
    },
    announceFlowrule: {
      good: async () => byOperator({ body: { override_accept: true } }, await flowrule()),
      bad: { conflict: async () => byOperator({ body: {} }, await withdrawn()) },
    },
    keepMeasure: {
      good: async () => byOperator({}, { uuid: (await mitigated(api, address())).rule }),
      bad: { conflict: async () => byOperator({}, { uuid: (await world.rule('user')).uuid }) },
    },
  };
}
