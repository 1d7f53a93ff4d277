/**
 * Two providers, their users and one object of each kind a test needs: whose objects they are is what the tests of
 * roles and ownership are about. Test code only.
 */
import assert from 'node:assert/strict';
import type { ApiFixture, Holder } from './api-fixture.ts';

export type HolderName = 'provider' | 'user' | 'sibling' | 'stranger' | 'strangerProvider';

export interface World {
  readonly holders: Readonly<Record<HolderName, Holder>>;
  /** An address that only this holder may act on. */
  readonly addressOf: Readonly<Record<HolderName, string>>;
  /** A new rule of the holder's, with what was asked for on top. */
  rule(owner: HolderName, more?: object): Promise<{ uuid: string; change_uuid?: string }>;
  /** Addresses of the holder's in turn: one destination has few filters. */
  nextAddress(owner: HolderName): string;
  /** A new filter of the holder's, likewise. */
  filter(owner: HolderName, more?: object): Promise<{ uuid: string }>;
}

export async function buildWorld(api: ApiFixture): Promise<World> {
  await api.call('createLocation', {}, { key: api.operatorKey, body: { name: 'fra1' } });
  const provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  const strangerProvider = await api.provider(['198.51.100.0/24']);
  const holders = {
    provider,
    user: await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']),
    sibling: await api.user(provider, ['203.0.113.16/28']),
    stranger: await api.user(strangerProvider, ['198.51.100.0/28']),
    strangerProvider,
  };
  const addressOf = {
    provider: '203.0.113.200',
    user: '203.0.113.7',
    sibling: '203.0.113.17',
    stranger: '198.51.100.7',
    strangerProvider: '198.51.100.200',
  };
  let turn = 0;
  const nextAddress = (owner: HolderName): string => {
    const address = addressOf[owner];
    const last = Number(address.slice(address.lastIndexOf('.') + 1));
    // Everyone holds the sixteen around its address.
    return `${address.slice(0, address.lastIndexOf('.'))}.${(last & ~15) + (turn++ % 16)}`;
  };
  return {
    holders,
    addressOf,
    nextAddress,
    async rule(owner, more = {}) {
      const body = { dst: addressOf[owner], protocol: 'udp', action: 'drop', ...more };
      const reply = await api.call('createFirewallRule', {}, { key: holders[owner].key, body });
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    },
    async filter(owner, more = {}) {
      const body = { dst: nextAddress(owner), filter: 20, ...more };
      const reply = await api.call('createFilter', {}, { key: holders[owner].key, body });
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    },
  };
}
