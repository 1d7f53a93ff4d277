/** The matrix' rows: operations on detection. Test code only. */
import assert from 'node:assert/strict';
import { everyone, type MatrixKit, ownOrUsers, type Rows } from '../matrix.ts';

export function detectionRows({ api, world, next }: MatrixKit): Rows {
  const scope = () => `2001:db8:d1::${next().toString(16)}`;
  const exporter = () => ({ name: `matrix${next()}`, source: `2001:db8:ffe::${next().toString(16)}` });
  const made = async (operation: string, body: object): Promise<{ uuid: string }> => {
    const reply = await api.call(operation, {}, { key: api.operatorKey, body });
    assert.equal(reply.status, 200, reply.text);
    return { uuid: reply.body.uuid };
  };
  const policy = () => made('createDetectionPolicy', { scope: scope() });
  const detector = () => made('createDetector', { name: `matrix${next()}` });
  return {
    createDetectionPolicy: {
      expect: everyone,
      send: (key) => api.call('createDetectionPolicy', {}, { key, body: { scope: scope() } }),
    },
    listDetectionPolicies: { expect: everyone, send: (key) => api.call('listDetectionPolicies', {}, { key }) },
    readDetectionPolicy: {
      expect: everyone,
      send: async (key) => api.call('readDetectionPolicy', await policy(), { key }),
    },
    changeDetectionPolicy: {
      expect: everyone,
      send: async (key) => api.call('changeDetectionPolicy', await policy(), { key, body: { hold_s: 60 } }),
    },
    deleteDetectionPolicy: {
      expect: everyone,
      send: async (key) => api.call('deleteDetectionPolicy', await policy(), { key }),
    },
    readEffectiveDetectionPolicy: {
      expect: ownOrUsers(403),
      query: `?dst=${world.addressOf.user}`,
      send: (key, target) =>
        api.call('readEffectiveDetectionPolicy', {}, { key, query: `?dst=${world.addressOf[target]}` }),
    },
    createExporter: {
      expect: everyone,
      send: (key) => api.call('createExporter', {}, { key, body: exporter() }),
    },
    listExporters: { expect: everyone, send: (key) => api.call('listExporters', {}, { key }) },
    readExporter: {
      expect: everyone,
      send: async (key) => api.call('readExporter', await made('createExporter', exporter()), { key }),
    },
    changeExporter: {
      expect: everyone,
      send: async (key) =>
        api.call('changeExporter', await made('createExporter', exporter()), { key, body: { sampling: 64 } }),
    },
    deleteExporter: {
      expect: everyone,
      send: async (key) => api.call('deleteExporter', await made('createExporter', exporter()), { key }),
    },
    createDetector: {
      expect: everyone,
      send: (key) => api.call('createDetector', {}, { key, body: { name: `matrix${next()}` } }),
    },
    listDetectors: { expect: everyone, send: (key) => api.call('listDetectors', {}, { key }) },
    readDetector: { expect: everyone, send: async (key) => api.call('readDetector', await detector(), { key }) },
    deleteDetector: { expect: everyone, send: async (key) => api.call('deleteDetector', await detector(), { key }) },
  };
}
