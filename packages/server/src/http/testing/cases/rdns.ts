/** Requests for operations on PTR records and reverse zones. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function rdnsCases({ api, world, next, byUser, byOperator }: CaseKit): OperationCases {
  const { user } = world.holders;
  const record = 'mail.example.net';
  const fresh = () => `2001:db8:7::${next().toString(16)}`;
  const recorded = async (): Promise<string> => {
    const ips = fresh();
    const reply = await api.call('createRdns', {}, { key: user.key, body: { ips, record } });
    assert.equal(reply.status, 200, reply.text);
    return ips;
  };
  /** Of addresses that nobody here holds. */
  const zoneName = () => `${[...next().toString(16).padStart(6, '0')].join('.')}.0.d.f.ip6.arpa`;
  const zone = () => ({ zone: zoneName(), driver: 'rfc2136', server: '127.0.0.1:9' });
  const stored = async (): Promise<string> => {
    const reply = await api.call('createRdnsZone', {}, { key: api.operatorKey, body: zone() });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid;
  };
  return {
    createRdns: {
      good: async () => byUser({ body: { ips: fresh(), record } }),
      bad: {
        validation_failed: async () => byUser({ body: { ips: '2001:db8:7::/64', record: 'mail_.example.net' } }),
        ip_not_allowed: async () => byUser({ body: { ips: world.addressOf.sibling, record } }),
        conflict: async () => byUser({ body: { ips: await recorded(), record } }),
      },
    },
    updateRdns: {
      // Of what the provider made before it gave the address away: what needs room in a quota.
      good: async () => {
        const ips = `2001:db8:e${next().toString(16).padStart(3, '0')}::1`;
        const { provider } = world.holders;
        assert.equal((await api.call('createRdns', {}, { key: provider.key, body: { ips, record } })).status, 200);
        const { key, uuid } = await api.user(provider, [ips]);
        return { ask: { key, body: { ips, record: 'other.example.net' } }, account: uuid };
      },
      bad: {
        validation_failed: async () => byUser({ body: { ips: 'here', record: '203.0.113.7' } }),
        ip_not_allowed: async () => byUser({ body: { ips: world.addressOf.stranger, record } }),
        not_found: async () => byUser({ body: { ips: fresh(), record } }),
      },
    },
    deleteRdns: {
      good: async () => byUser({ body: { ips: await recorded() } }),
      bad: {
        validation_failed: async () => byUser({ body: { ips: '203.0.113.0/28' } }),
        ip_not_allowed: async () => byUser({ body: { ips: world.addressOf.provider } }),
        not_found: async () => byUser({ body: { ips: fresh() } }),
      },
    },
    listRdns: {
      good: async () => byUser({ query: '?ip=2001:db8:7::/48&limit=5' }),
      bad: { validation_failed: async () => byUser({ query: '?ip=nowhere' }) },
    },
    createRdnsZone: {
      good: () => byOperator({ body: zone() }),
      bad: {
        validation_failed: () => byOperator({ body: { zone: 'example.net', driver: 'powerdns', secondaries: ['x'] } }),
        conflict: async () => {
          const body = zone();
          await api.call('createRdnsZone', {}, { key: api.operatorKey, body });
          return byOperator({ body });
        },
      },
    },
    listRdnsZones: { good: () => byOperator({}), bad: {} },
    readRdnsZone: { good: async () => byOperator({}, { uuid: await stored() }), bad: {} },
    changeRdnsZone: {
      good: async () => byOperator({ body: { ttl: 60 } }, { uuid: await stored() }),
      bad: {
        validation_failed: async () =>
          byOperator({ body: { api_key: 'not-of-this-driver' } }, { uuid: await stored() }),
      },
    },
    deleteRdnsZone: { good: async () => byOperator({}, { uuid: await stored() }), bad: {} },
  };
}
