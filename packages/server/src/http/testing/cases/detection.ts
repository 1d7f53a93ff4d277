/** Requests for operations on detection. Test code only. */
import assert from 'node:assert/strict';
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function detectionCases({ api, world, next, byUser, byOperator }: CaseKit): OperationCases {
  const subnet = () => `2001:db8:d0::${next().toString(16)}`;
  const made = async (operation: string, body: object): Promise<string> => {
    const reply = await api.call(operation, {}, { key: api.operatorKey, body });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.uuid;
  };
  const source = () => `2001:db8:fff::${next().toString(16)}`;
  const policy = () => made('createDetectionPolicy', { scope: subnet() });
  const exporter = (name = `exporter${next()}`) => made('createExporter', { name, source: source() });
  const detector = () => made('createDetector', { name: `detector${next()}` });
  const never = '01890000-0000-7000-8000-000000000000';
  return {
    createDetectionPolicy: {
      good: () =>
        byOperator({ body: { scope: subnet(), thresholds: { 'tcp-syn': { pps: 5000 } }, aggregate_thresholds: {} } }),
      bad: {
        validation_failed: () => byOperator({ body: { scope: '192.0.2.0/24', thresholds: { total: { pps: 99 } } } }),
        not_found: () => byOperator({ body: { scope: never } }),
        conflict: async () => {
          const scope = subnet();
          await made('createDetectionPolicy', { scope });
          return byOperator({ body: { scope } });
        },
      },
    },
    listDetectionPolicies: { good: () => byOperator({}), bad: {} },
    readDetectionPolicy: { good: async () => byOperator({}, { uuid: await policy() }), bad: {} },
    changeDetectionPolicy: {
      good: async () => byOperator({ body: { mitigation: 'edge' } }, { uuid: await policy() }),
      bad: {},
    },
    deleteDetectionPolicy: { good: async () => byOperator({}, { uuid: await policy() }), bad: {} },
    readEffectiveDetectionPolicy: {
      good: async () => byUser({ query: `?dst=${world.addressOf.user}` }),
      bad: {
        validation_failed: async () => byUser({ query: '?dst=somewhere' }),
        ip_not_allowed: async () => byUser({ query: `?dst=${world.addressOf.stranger}` }),
      },
    },
    createExporter: {
      good: () => byOperator({ body: { name: `exporter${next()}`, source: source(), sampling: 1024 } }),
      bad: {
        validation_failed: () => byOperator({ body: { name: 'a', source: '192.0.2.0/24', sampling: 'often' } }),
        conflict: async () => {
          const body = { name: `exporter${next()}`, source: source() };
          await made('createExporter', body);
          return byOperator({ body: { ...body, name: `exporter${next()}` } });
        },
      },
    },
    listExporters: { good: () => byOperator({}), bad: {} },
    readExporter: { good: async () => byOperator({}, { uuid: await exporter() }), bad: {} },
    changeExporter: {
      good: async () => byOperator({ body: { sampling: 'prescaled', interfaces: null } }, { uuid: await exporter() }),
      bad: {
        validation_failed: async () => byOperator({ body: { source: 'edge1' } }, { uuid: await exporter() }),
        conflict: async () => {
          const name = `exporter${next()}`;
          await exporter(name);
          return byOperator({ body: { name } }, { uuid: await exporter() });
        },
      },
    },
    deleteExporter: { good: async () => byOperator({}, { uuid: await exporter() }), bad: {} },
    createDetector: {
      good: () => byOperator({ body: { name: `detector${next()}` } }),
      bad: {
        conflict: async () => {
          const body = { name: `detector${next()}` };
          await made('createDetector', body);
          return byOperator({ body });
        },
      },
    },
    listDetectors: { good: () => byOperator({}), bad: {} },
    readDetector: { good: async () => byOperator({}, { uuid: await detector() }), bad: {} },
    deleteDetector: { good: async () => byOperator({}, { uuid: await detector() }), bad: {} },
  };
}
