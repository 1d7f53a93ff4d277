/** The matrix' rows: webhooks, which are their owner's alone. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ownOnly, type Rows } from '../matrix.ts';
import { removeWebhooks } from '../webhooks.ts';
import type { HolderName } from '../world.ts';

export function webhookRows({ api, world }: MatrixKit): Rows {
  const body = { url: 'https://hooks.example.net/levee', events: ['*'] };
  const made = async (target: HolderName) => {
    await removeWebhooks(api, world.holders[target]);
    const created = await api.call('createWebhook', {}, { key: world.holders[target].key, body });
    return { uuid: created.body.uuid as string };
  };
  const named = (id: string, ask: object = {}) => ({
    expect: ownOnly(404),
    send: async (key: string, target: HolderName) => api.call(id, await made(target), { key, ...ask }),
  });
  return {
    createWebhook: {
      expect: everyone,
      send: (key) => api.call('createWebhook', {}, { key, body }),
      check: (reply) => assert.match(reply.body.secret, /^whsec_/),
    },
    listWebhooks: {
      expect: everyone,
      send: async (key, target) => {
        await made(target);
        return api.call('listWebhooks', {}, { key });
      },
      check: (reply, caller, target) => {
        const owners = new Set(reply.body.map((webhook: { owner_uuid: string }) => webhook.owner_uuid));
        assert.ok(owners.size <= 1, 'of one account alone');
        assert.equal(owners.has(world.holders[target].uuid), caller === target);
      },
    },
    readWebhook: named('readWebhook'),
    changeWebhook: named('changeWebhook', { body: { disabled: true } }),
    deleteWebhook: named('deleteWebhook'),
    testWebhook: named('testWebhook'),
    rotateWebhookSecret: named('rotateWebhookSecret'),
    listWebhookDeliveries: named('listWebhookDeliveries'),
    retryWebhookDelivery: {
      expect: ownOnly(404),
      send: async (key, target) => {
        const webhook = await made(target);
        const queued = await api.call('testWebhook', webhook, { key: world.holders[target].key });
        return api.call('retryWebhookDelivery', { ...webhook, delivery_uuid: queued.body.uuid }, { key });
      },
    },
  };
}
