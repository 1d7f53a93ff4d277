/** The matrix' rows: operations on a provider's users. Test code only. */
import assert from 'node:assert/strict';
import type { Holder } from '../api-fixture.ts';
import { everyone, type MatrixKit, ofProvider, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

export function userRows({ api, world, next }: MatrixKit): Rows {
  return {
    createUser: {
      expect: (_, target) => (ofProvider.has(target) ? 200 : 403),
      send: (key, target) => {
        const username = `fresh${next()}`;
        // Addresses that no user holds yet, in the space of the target's provider.
        const fresh = ofProvider.has(target) ? `2001:db8:aa::${next().toString(16)}` : '198.51.100.100';
        const body = {
          username,
          email: `${username}@example.net`,
          password: 'ochre-meadow-tin-41',
          ips: [fresh],
        };
        return api.call('createUser', {}, { key, body });
      },
    },
    addUserIps: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => {
        const body = { user_uuid: world.holders[target].uuid, ips: [`2001:db8:ab::${next().toString(16)}`] };
        return api.call('addUserIps', {}, { key, body });
      },
    },
    deleteUserIps: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => {
        const ips = [{ user: '203.0.113.15', sibling: '203.0.113.31' }[target as 'user'] ?? world.addressOf[target]];
        return api.call('deleteUserIps', {}, { key, body: { user_uuid: world.holders[target].uuid, ips } });
      },
    },
    listUsers: {
      expect: everyone,
      send: (key) => api.call('listUsers', {}, { key }),
      check: (reply) => {
        const found = new Set(reply.body.map(({ uuid }: { uuid: string }) => uuid));
        const { user, sibling, stranger, provider } = world.holders;
        assert.deepEqual(
          [user, sibling, stranger, provider].map(({ uuid }) => found.has(uuid)),
          [true, true, false, false],
        );
      },
    },
    readUser: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => api.call('readUser', { uuid: world.holders[target].uuid }, { key }),
      check: (reply, _, target) => assert.equal(reply.body.uuid, world.holders[target].uuid),
    },
    deleteUser: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: async (key, target) => {
        const { provider, strangerProvider } = world.holders;
        // Another user of the same provider: the world's own are needed on.
        const fresh: Partial<Record<HolderName, () => Promise<Holder>>> = {
          user: () => api.user(provider, []),
          sibling: () => api.user(provider, []),
          stranger: () => api.user(strangerProvider, []),
        };
        const { uuid } = (await fresh[target]?.()) ?? world.holders[target];
        return api.call('deleteUser', { uuid }, { key });
      },
    },
    resetUserPassword: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => {
        const body = { email: world.holders[target].email ?? 'nobody@example.net', password: 'ochre-meadow-tin-42' };
        return api.call('resetUserPassword', {}, { key, body });
      },
    },
  };
}
