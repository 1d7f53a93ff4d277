/** Requests for webhooks and their deliveries. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';
import { removeWebhooks } from '../webhooks.ts';

export function webhookCases({ api, world, byUser }: CaseKit): OperationCases {
  const { key } = world.holders.user;
  const body = { url: 'https://hooks.example.net/levee?token=7f2d90c1', events: ['firewall_rule.*', 'attack.started'] };
  /** An account may have twenty, and there are more cases than that. */
  const makeRoom = () => removeWebhooks(api, world.holders.user);
  const made = async (more: object = {}) => {
    await makeRoom();
    const created = await api.call('createWebhook', {}, { key, body: { ...body, ...more } });
    return { uuid: created.body.uuid as string };
  };
  const delivery = async (of: { uuid: string }) => {
    const queued = await api.call('testWebhook', of, { key });
    return { ...of, delivery_uuid: queued.body.uuid as string };
  };
  const disable = (of: { uuid: string }) => api.call('changeWebhook', of, { key, body: { disabled: true } });
  return {
    createWebhook: {
      good: async () => {
        await makeRoom();
        return byUser({ body });
      },
      bad: { validation_failed: async () => byUser({ body: { ...body, url: 'http://10.0.0.1/', events: [] } }) },
    },
    listWebhooks: { good: async () => byUser({}), bad: {} },
    readWebhook: { good: async () => byUser({}, await made()), bad: {} },
    changeWebhook: {
      good: async () => byUser({ body: { description: null, disabled: true } }, await made({ description: 'x' })),
      bad: {
        not_found: async () => byUser({ body: { disabled: true } }, { uuid: '0190a5d0-0000-7000-8000-000000000000' }),
      },
    },
    deleteWebhook: { good: async () => byUser({}, await made()), bad: {} },
    testWebhook: {
      good: async () => byUser({}, await made()),
      bad: { conflict: async () => byUser({}, await made({ disabled: true })) },
    },
    rotateWebhookSecret: { good: async () => byUser({}, await made()), bad: {} },
    listWebhookDeliveries: {
      good: async () => byUser({ query: '?state=pending&limit=1' }, { uuid: (await delivery(await made())).uuid }),
      bad: { validation_failed: async () => byUser({ query: '?cursor=-&limit=0' }, await made()) },
    },
    retryWebhookDelivery: {
      good: async () => byUser({}, await delivery(await made())),
      bad: {
        not_found: async () => byUser({}, { ...(await made()), delivery_uuid: '0190a5d0-0000-7000-8000-000000000000' }),
        conflict: async () => {
          const queued = await delivery(await made());
          await disable(queued);
          return byUser({}, queued);
        },
      },
    },
  };
}
