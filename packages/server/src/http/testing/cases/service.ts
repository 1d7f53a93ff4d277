/** Requests for keys and the service itself. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function serviceCases({ api, world, byUser }: CaseKit): OperationCases {
  const { stranger, user } = world.holders;
  return {
    createApiKey: {
      good: async () => byUser({ body: { name: 'another' } }),
      bad: { not_found: async () => byUser({ body: { name: 'another', account_uuid: stranger.uuid } }) },
    },
    listApiKeys: {
      good: async () => byUser({}),
      bad: { not_found: async () => byUser({ query: `?account_uuid=${stranger.uuid}` }) },
    },
    revokeApiKey: {
      good: async () => {
        const issued = await api.call('createApiKey', {}, { key: user.key, body: { name: 'short-lived' } });
        return byUser({}, { uuid: issued.body.uuid });
      },
      bad: {
        conflict: async () => {
          const { body } = await api.call('whoAmI', {}, { key: api.operatorKey });
          return { params: { uuid: body.api_key.uuid }, ask: { key: api.operatorKey }, account: body.account.uuid };
        },
      },
    },
    whoAmI: { good: async () => byUser({}), bad: {} },
    readOpenapi: { good: async () => byUser({}), bad: {} },
  };
}
