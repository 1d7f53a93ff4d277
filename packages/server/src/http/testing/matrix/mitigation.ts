/** The matrix' rows: operations on measures against attacks. Test code only. */

import { everyone, type MatrixKit, type Row, type Rows } from '../matrix.ts';
import { mitigated } from '../mitigated.ts';

export function mitigationRows({ api, world, next }: MatrixKit): Rows {
  /** On each other's destination an attack would find the other's measures. */
  const address = () => `2001:db8:7:f::${next().toString(16)}`;
  const of = (id: string, what: 'rule' | 'flowrule', body?: object): Row => ({
    expect: everyone,
    send: async (key) => {
      const made = await mitigated(api, address());
      return api.call(id, { uuid: made[what] }, { key, ...(body && { body }) });
    },
  });
  return {
    readSpeaker: { expect: everyone, send: (key) => api.call('readSpeaker', {}, { key }) },
    listAllFlowrules: {
      expect: everyone,
      send: (key, target) =>
        api.call('listAllFlowrules', {}, { key, query: `?user_uuid=${world.holders[target].uuid}` }),
    },
    withdrawFlowrule: of('withdrawFlowrule', 'flowrule'),
    keepFlowrule: of('keepFlowrule', 'flowrule'),
    announceFlowrule: of('announceFlowrule', 'flowrule', {}),
    keepMeasure: of('keepMeasure', 'rule'),
  };
}
