/** Requests for operations on attacks and flowrules. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';
import { propose } from '../propose.ts';

export function attackCases({ api, world, next, byUser, byProvider, byOperator }: CaseKit): OperationCases {
  const dst = world.addressOf.user;
  const report = (more: object = {}) => ({
    source: 'elsewhere',
    external_id: `case-${next()}`,
    dst,
    state: 'started',
    pps: 1000,
    ...more,
  });
  const tell = async (body: object) => {
    const reply = await api.call('recordAttack', {}, { key: api.operatorKey, body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid as string;
  };
  const ban = (uuid: string, ip: string) => ({ ip, action: 'ban', attack_details: { attack_uuid: uuid } });
  return {
    listFlowrules: { good: async () => byUser({}), bad: {} },
    readFlowrule: {
      good: async () => byUser({}, { uuid: (await propose(api.database.pool, dst)).uuid }),
      bad: {},
    },
    listProviderFlowrules: { good: async () => byProvider({}), bad: {} },
    listAttacks: { good: async () => byUser({}), bad: {} },
    listProviderAttacks: { good: async () => byProvider({}), bad: {} },
    readAttack: { good: async () => byUser({}, { uuid: await tell(report()) }), bad: {} },
    readAttackPcap: { good: async () => byUser({}, { uuid: await tell(report()) }), bad: {} },
    listAllAttacks: { good: async () => byOperator({}), bad: {} },
    readAnyAttack: { good: async () => byOperator({}, { uuid: await tell(report()) }), bad: {} },
    readAnyAttackPcap: { good: async () => byOperator({}, { uuid: await tell(report()) }), bad: {} },
    recordAttack: {
      good: () => byOperator({ body: report() }),
      bad: {
        conflict: async () => {
          const first = report();
          await tell(first);
          return byOperator({ body: { ...first, dst: world.addressOf.sibling } });
        },
      },
    },
    recordFastnetmonAttack: {
      good: () => byOperator({ body: ban(`case-${next()}`, dst) }),
      bad: {
        conflict: async () => {
          const uuid = `case-${next()}`;
          await api.call('recordFastnetmonAttack', {}, { key: api.operatorKey, body: ban(uuid, dst) });
          return byOperator({ body: ban(uuid, world.addressOf.sibling) });
        },
      },
    },
  };
}
