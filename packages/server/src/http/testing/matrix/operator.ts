/** The matrix' rows: operations of whoever runs the installation. Test code only. */
import { everyone, type MatrixKit, type Rows } from '../matrix.ts';

export function operatorRows({ api, world, next }: MatrixKit): Rows {
  const announced = async (): Promise<string> => {
    const body = { name: `edge${next()}`, location: 'fra1' };
    return (await api.call('createRouter', {}, { key: api.operatorKey, body })).body.uuid;
  };
  return {
    createProvider: {
      expect: everyone,
      send: (key) => api.call('createProvider', {}, { key, body: { name: `matrix ${next()}`, prefixes: [] } }),
    },
    changeProvider: {
      // Only providers can be named.
      expect: (_, target) => (target === 'provider' || target === 'strangerProvider' ? 200 : 404),
      send: (key, target) => {
        const body = { name: `matrix ${next()}` };
        return api.call('changeProvider', { uuid: world.holders[target].uuid }, { key, body });
      },
    },
    listProviders: { expect: everyone, send: (key) => api.call('listProviders', {}, { key }) },
    createLocation: {
      expect: everyone,
      send: (key) => api.call('createLocation', {}, { key, body: { name: `place${next()}` } }),
    },
    listLocations: { expect: everyone, send: (key) => api.call('listLocations', {}, { key }) },
    createRouter: {
      expect: everyone,
      send: (key) => api.call('createRouter', {}, { key, body: { name: `edge${next()}`, location: 'fra1' } }),
    },
    listRouters: { expect: everyone, send: (key) => api.call('listRouters', {}, { key }) },
    readRouter: { expect: everyone, send: async (key) => api.call('readRouter', { uuid: await announced() }, { key }) },
    changeRouter: {
      expect: everyone,
      send: async (key) => api.call('changeRouter', { uuid: await announced() }, { key, body: { location: 'fra1' } }),
    },
    renewRouterToken: {
      expect: everyone,
      send: async (key) => api.call('renewRouterToken', { uuid: await announced() }, { key }),
    },
    deleteRouter: {
      expect: everyone,
      send: async (key) => api.call('deleteRouter', { uuid: await announced() }, { key }),
    },
    deleteLocation: {
      expect: everyone,
      send: async (key) => {
        const body = { name: `place${next()}` };
        const { uuid } = (await api.call('createLocation', {}, { key: api.operatorKey, body })).body;
        return api.call('deleteLocation', { uuid }, { key });
      },
    },
  };
}
