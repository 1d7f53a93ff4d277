/** The matrix' rows: operations on filters. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, ownersIn, ownOnly, ownOrUsers, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

export function filterRows({ api, world }: MatrixKit): Rows {
  return {
    createFilter: {
      expect: ownOnly(403),
      send: (key, target) => api.call('createFilter', {}, { key, body: { dst: world.addressOf[target], filter: 20 } }),
      check: (reply, caller) => assert.equal(reply.body.owner_uuid, world.holders[caller as HolderName].uuid),
    },
    readFilter: {
      expect: ownOrUsers(404),
      send: async (key, target) => api.call('readFilter', { uuid: (await world.filter(target)).uuid }, { key }),
      check: (reply, _, target) => assert.equal(reply.body[0].owner_uuid, world.holders[target].uuid),
    },
    deleteFilter: {
      expect: ownOrUsers(404),
      send: async (key, target) => api.call('deleteFilter', { uuid: (await world.filter(target)).uuid }, { key }),
    },
    listFilters: {
      expect: everyone,
      send: async (key, target) => {
        await world.filter(target);
        return api.call('listFilters', {}, { key });
      },
      check: (reply, caller) => assert.deepEqual(ownersIn(reply), [world.holders[caller as HolderName].uuid]),
    },
    listProviderFilters: {
      expect: everyone,
      send: async (key, target) => {
        await world.filter(target);
        const query = `?user_uuid=${world.holders[target].uuid}`;
        return api.call('listProviderFilters', {}, { key, query });
      },
      check: (reply, _, target) =>
        assert.deepEqual(ownersIn(reply), ofProvider.has(target) ? [world.holders[target].uuid] : []),
    },
    listFilterKinds: { expect: everyone, send: (key) => api.call('listFilterKinds', {}, { key }) },
    listProviderFilterKinds: { expect: everyone, send: (key) => api.call('listProviderFilterKinds', {}, { key }) },
  };
}
