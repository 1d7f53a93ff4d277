/** The matrix' rows: the audit log and quotas. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ofProvider, type Rows } from '../matrix.ts';
import type { HolderName } from '../world.ts';

export function auditRows({ api, world }: MatrixKit): Rows {
  return {
    listAudit: {
      expect: everyone,
      send: async (key, target) => {
        const { uuid } = await world.rule(target);
        return api.call('listAudit', {}, { key, query: `?object_uuid=${uuid}` });
      },
      // One entry of the target's new rule, or none: to others it does not exist.
      check: ({ body }, caller, target) => {
        const sees = caller === 'operator' || caller === target || (caller === 'provider' && ofProvider.has(target));
        const owners = body.map((entry: { owner_uuid: string }) => entry.owner_uuid);
        assert.deepEqual(owners, sees ? [world.holders[target].uuid] : []);
      },
    },
    readQuota: {
      expect: everyone,
      send: (key, target) => api.call('readQuota', { account_uuid: world.holders[target].uuid }, { key }),
      check: ({ body }, _, target: HolderName) => assert.equal(body.account_uuid, world.holders[target].uuid),
    },
    setQuota: {
      expect: everyone,
      send: (key, target) => {
        const body = { webhooks: 1000 };
        return api.call('setQuota', { account_uuid: world.holders[target].uuid }, { key, body });
      },
    },
  };
}
