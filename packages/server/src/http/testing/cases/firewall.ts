/** Requests for operations on firewall rules. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function firewallCases({ api, world, next, byUser, byProvider }: CaseKit): OperationCases {
  const { user } = world.holders;
  const dst = world.addressOf.user;
  const rule = { dst, protocol: 'udp', action: 'drop' };
  const undone = async () => {
    const { change_uuid } = await world.rule('user', { confirm_within: 3600 });
    assert.ok(change_uuid);
    return change_uuid;
  };
  return {
    createFirewallRule: {
      good: async () => byUser({ body: rule }),
      bad: { ip_not_allowed: async () => byUser({ body: { ...rule, dst: world.addressOf.sibling } }) },
    },
    readFirewallRule: {
      good: async () => byUser({}, { uuid: (await world.rule('user')).uuid }),
      bad: {},
    },
    deleteFirewallRule: {
      good: async () => byUser({}, { uuid: (await world.rule('user')).uuid }),
      bad: {},
    },
    changeFirewallRule: {
      good: async () => byUser({ body: { priority: 3 } }, { uuid: (await world.rule('user')).uuid }),
      bad: {
        ip_not_allowed: async () =>
          byUser({ body: { dst: world.addressOf.stranger } }, { uuid: (await world.rule('user')).uuid }),
        conflict: async () => {
          const { uuid } = await world.rule('user');
          await api.call('deleteFirewallRule', { uuid }, { key: user.key });
          return byUser({ body: { priority: 3 } }, { uuid });
        },
      },
    },
    replaceFirewallRules: {
      good: async () => {
        const body = { rules: [{ protocol: 'udp', action: 'drop' }] };
        return byUser({ query: `?dst=2001:db8:7::${next().toString(16)}`, body });
      },
      bad: { ip_not_allowed: async () => byUser({ query: '?dst=192.0.2.1', body: { rules: [] } }) },
    },
    explainPacket: {
      good: async () => byUser({ body: { dst, src: '192.0.2.1', protocol: 'udp' } }),
      bad: {
        ip_not_allowed: async () => byUser({ body: { dst: '192.0.2.9', src: '192.0.2.1', protocol: 'udp' } }),
      },
    },
    previewFirewallRule: {
      good: async () => byUser({ body: rule }),
      bad: { ip_not_allowed: async () => byUser({ body: { ...rule, dst: world.addressOf.sibling } }) },
    },
    confirmChange: {
      good: async () => byUser({}, { change_uuid: await undone() }),
      bad: {
        conflict: async () => {
          const change_uuid = await undone();
          await api.database.pool.query(`update confirmation set deadline = now() where change_uuid = $1`, [
            change_uuid,
          ]);
          return byUser({}, { change_uuid });
        },
      },
    },
    listFirewallRules: { good: async () => byUser({}), bad: {} },
    listProviderFirewallRules: { good: async () => byProvider({}), bad: {} },
  };
}
