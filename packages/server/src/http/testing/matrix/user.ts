/** The matrix' rows: operations on a provider's users. Test code only. */
import { type MatrixKit, ofProvider, type Rows } from '../matrix.ts';

export function userRows({ api, world, next }: MatrixKit): Rows {
  return {
    createUser: {
      expect: (_, target) => (ofProvider.has(target) ? 200 : 403),
      send: (key, target) => {
        const username = `fresh${next()}`;
        // Addresses that no user holds yet, in the space of the target's provider.
        const net = ofProvider.has(target) ? '203.0.113' : '198.51.100';
        const body = {
          username,
          email: `${username}@example.net`,
          password: 'ochre-meadow-tin-41',
          ips: [`${net}.${99 + next()}`],
        };
        return api.call('createUser', {}, { key, body });
      },
    },
    addUserIps: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => {
        const body = { user_uuid: world.holders[target].uuid, ips: [`203.0.113.${130 + next()}`] };
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
    resetUserPassword: {
      expect: (_, target) => (target === 'user' || target === 'sibling' ? 200 : 404),
      send: (key, target) => {
        const body = { email: world.holders[target].email ?? 'nobody@example.net', password: 'ochre-meadow-tin-42' };
        return api.call('resetUserPassword', {}, { key, body });
      },
    },
  };
}
