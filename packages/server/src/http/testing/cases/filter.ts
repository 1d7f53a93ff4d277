/** Requests for operations on filters. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function filterCases({ api, world, next, byUser, byProvider }: CaseKit): OperationCases {
  const filter = () => ({ dst: world.nextAddress('user'), filter: 20 });
  const made = async () => ({ uuid: (await world.filter('user')).uuid });
  return {
    createFilter: {
      good: async () => byUser({ body: filter() }),
      bad: {
        ip_not_allowed: async () => byUser({ body: { ...filter(), dst: world.addressOf.sibling } }),
        quota_exceeded: async () => {
          const dst = `2001:db8:${(0xf000 + next()).toString(16)}::1`;
          const limited = await api.user(world.holders.provider, [dst]);
          await api.call('setQuota', { account_uuid: limited.uuid }, { key: api.operatorKey, body: { filters: 0 } });
          return { ask: { key: limited.key, body: { dst, filter: 20 } }, account: limited.uuid };
        },
      },
    },
    readFilter: { good: async () => byUser({}, await made()), bad: {} },
    deleteFilter: { good: async () => byUser({}, await made()), bad: {} },
    listFilters: { good: async () => byUser({}), bad: {} },
    listProviderFilters: { good: async () => byProvider({}), bad: {} },
    listFilterKinds: { good: async () => byUser({}), bad: {} },
    listProviderFilterKinds: { good: async () => byProvider({}), bad: {} },
  };
}
