/** Requests for operations on a provider's users. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function userCases({ api, world, next, byProvider }: CaseKit): OperationCases {
  const { provider, stranger, user } = world.holders;
  const dst = world.addressOf.user;
  const newUser = () => {
    const username = `case${next()}`;
    return { username, email: `${username}@example.net`, password: 'ochre-meadow-tin-43', ips: [] as string[] };
  };
  return {
    createUser: {
      good: async () => byProvider({ body: newUser() }),
      bad: {
        ip_not_allowed: async () => byProvider({ body: { ...newUser(), ips: [world.addressOf.stranger] } }),
        conflict: async () => byProvider({ body: { ...newUser(), ips: [dst] } }),
      },
    },
    addUserIps: {
      good: async () => byProvider({ body: { user_uuid: user.uuid, ips: [`2001:db8:a::${next().toString(16)}`] } }),
      bad: {
        ip_not_allowed: async () => byProvider({ body: { user_uuid: user.uuid, ips: ['192.0.2.1'] } }),
        not_found: async () => byProvider({ body: { user_uuid: stranger.uuid, ips: [dst] } }),
        conflict: async () => byProvider({ body: { user_uuid: user.uuid, ips: [world.addressOf.sibling] } }),
      },
    },
    deleteUserIps: {
      good: async () => {
        const ips = [`2001:db8:9:${(next()).toString(16)}::/64`];
        await api.call('addUserIps', {}, { key: provider.key, body: { user_uuid: user.uuid, ips } });
        return byProvider({ body: { user_uuid: user.uuid, ips } });
      },
      bad: { not_found: async () => byProvider({ body: { user_uuid: stranger.uuid, ips: [dst] } }) },
    },
    listUsers: { good: async () => byProvider({}), bad: {} },
    readUser: { good: async () => byProvider({}, { uuid: user.uuid }), bad: {} },
    deleteUser: { good: async () => byProvider({}, { uuid: (await api.user(provider, [])).uuid }), bad: {} },
    resetUserPassword: {
      good: async () => byProvider({ body: { email: user.email, password: 'ochre-meadow-tin-44' } }),
      bad: {
        not_found: async () => byProvider({ body: { email: stranger.email, password: 'ochre-meadow-tin-44' } }),
      },
    },
  };
}
