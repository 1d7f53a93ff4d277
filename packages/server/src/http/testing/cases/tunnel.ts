/** Requests for operations on tunnels. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';
import { ensureTestRouter } from '../tunnel-world.ts';

export function tunnelCases({ api, world, next, byUser, byProvider }: CaseKit): OperationCases {
  const { user } = world.holders;
  const body = (more: object = {}) => {
    const ips = [`2001:db8:7:${next().toString(16)}::/64`];
    return { ips, endpoint: '198.51.100.250', type: 'GRE', ...more };
  };
  const tunnel = async (more: object = {}): Promise<{ uuid: string; ips: readonly string[] }> => {
    const reply = await api.call('createTunnel', {}, { key: user.key, body: body(more) });
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const marked = async () => {
    const { uuid } = await tunnel();
    await api.call('deleteTunnel', { uuid }, { key: user.key });
    return uuid;
  };
  return {
    createTunnel: {
      good: async () => byUser({ body: body() }),
      bad: {
        ip_not_allowed: async () => byUser({ body: body({ ips: [world.addressOf.sibling] }) }),
        conflict: async () => byUser({ body: body({ ips: (await tunnel()).ips }) }),
      },
    },
    listTunnels: { good: async () => byUser({}), bad: {} },
    listProviderTunnels: { good: async () => byProvider({}), bad: {} },
    readTunnel: { good: async () => byUser({}, { uuid: (await tunnel()).uuid }), bad: {} },
    deleteTunnel: { good: async () => byUser({}, { uuid: (await tunnel()).uuid }), bad: {} },
    changeTunnel: {
      good: async () => byUser({ body: { endpoint: '198.51.100.251' } }, { uuid: (await tunnel()).uuid }),
      bad: {
        ip_not_allowed: async () =>
          byUser({ body: { ips: [world.addressOf.stranger] } }, { uuid: (await tunnel()).uuid }),
        conflict: async () => byUser({ body: { endpoint: '198.51.100.251' } }, { uuid: await marked() }),
      },
    },
    readTunnelConfig: {
      good: async () => {
        await ensureTestRouter(api);
        return byUser({ query: '?format=iproute2' }, { uuid: (await tunnel()).uuid });
      },
      bad: { conflict: async () => byUser({ query: '?format=iproute2' }, { uuid: await marked() }) },
    },
  };
}
