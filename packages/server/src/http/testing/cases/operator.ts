/** Requests for operations of whoever runs the installation. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function operatorCases({ api, world, next, byOperator }: CaseKit): OperationCases {
  const announced = async (): Promise<string> => {
    const body = { name: `edge${next()}`, location: 'fra1' };
    return (await api.call('createRouter', {}, { key: api.operatorKey, body })).body.uuid;
  };
  return {
    createProvider: {
      good: () => byOperator({ body: { name: `case ${next()}`, prefixes: [] } }),
      bad: { conflict: () => byOperator({ body: { name: `case ${next()}`, prefixes: ['203.0.113.0/25'] } }) },
    },
    changeProvider: {
      good: async () => {
        const name = `case ${next()}`;
        const { body } = await api.call('createProvider', {}, { key: api.operatorKey, body: { name, prefixes: [] } });
        return byOperator({ body: { name: `${name} again` } }, { uuid: body.uuid });
      },
      bad: {
        conflict: () =>
          byOperator({ body: { remove_prefixes: ['203.0.113.0/25'] } }, { uuid: world.holders.provider.uuid }),
      },
    },
    listProviders: { good: () => byOperator({}), bad: {} },
    createLocation: {
      good: () => byOperator({ body: { name: `place${next()}` } }),
      bad: { conflict: () => byOperator({ body: { name: 'fra1' } }) },
    },
    listLocations: { good: () => byOperator({}), bad: {} },
    createRouter: {
      good: () =>
        byOperator({
          body: { name: `edge${next()}`, location: 'fra1', tunnel_addresses: [`2001:db8:ffff::${next()}`] },
        }),
      bad: {
        not_found: () => byOperator({ body: { name: `edge${next()}`, location: 'nowhere' } }),
        conflict: async () => {
          const body = { name: `edge${next()}`, location: 'fra1' };
          await api.call('createRouter', {}, { key: api.operatorKey, body });
          return byOperator({ body });
        },
      },
    },
    listRouters: { good: () => byOperator({}), bad: {} },
    readRouter: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    changeRouter: {
      good: async () => byOperator({ body: { name: `edge${next()}` } }, { uuid: await announced() }),
      bad: {
        conflict: async () => {
          const { body } = await api.call('readRouter', { uuid: await announced() }, { key: api.operatorKey });
          return byOperator({ body: { name: body.name } }, { uuid: await announced() });
        },
      },
    },
    renewRouterToken: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    deleteRouter: { good: async () => byOperator({}, { uuid: await announced() }), bad: {} },
    deleteLocation: {
      good: async () => {
        const { body } = await api.call(
          'createLocation',
          {},
          { key: api.operatorKey, body: { name: `place${next()}` } },
        );
        return byOperator({}, { uuid: body.uuid });
      },
      bad: {
        conflict: async () => {
          await announced();
          const { body } = await api.call('listLocations', {}, { key: api.operatorKey });
          const { uuid } = body.find((each: { name: string }) => each.name === 'fra1');
          return byOperator({}, { uuid });
        },
      },
    },
  };
}
