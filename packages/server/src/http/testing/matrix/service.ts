/** The matrix' rows: keys and the service itself. Test code only. */
import assert from 'node:assert/strict';
import { anyAccount, everyone, type MatrixKit, type Rows } from '../matrix.ts';

export function serviceRows({ api, world }: MatrixKit): Rows {
  return {
    createApiKey: {
      expect: anyAccount,
      send: (key, target) => {
        const body = { account_uuid: world.holders[target].uuid, name: 'another' };
        return api.call('createApiKey', {}, { key, body });
      },
      check: (reply, _, target) => assert.equal(reply.body.account_uuid, world.holders[target].uuid),
    },
    listApiKeys: {
      expect: anyAccount,
      send: (key, target) => api.call('listApiKeys', {}, { key, query: `?account_uuid=${world.holders[target].uuid}` }),
    },
    revokeApiKey: {
      expect: anyAccount,
      send: async (key, target) => {
        const body = { account_uuid: world.holders[target].uuid, name: 'short-lived' };
        const issued = await api.call('createApiKey', {}, { key: api.operatorKey, body });
        return api.call('revokeApiKey', { uuid: issued.body.uuid }, { key });
      },
    },
    whoAmI: {
      expect: everyone,
      send: (key) => api.call('whoAmI', {}, { key }),
      check: (reply, caller) => assert.equal(reply.body.account.role, caller),
    },
    readOpenapi: { expect: everyone, send: (key) => api.call('readOpenapi', {}, { key }) },
  };
}
