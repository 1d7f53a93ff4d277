/** Operations on detection: its policies, exporters and detectors, and which policy is in force. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import {
  detector,
  detectorCreate,
  detectorCreated,
  effectivePolicy,
  effectivePolicyQuery,
  exporter,
  exporterChange,
  exporterCreate,
  exporterInList,
  policy,
  policyChange,
  policyCreate,
  removedDetection,
} from '../schemas/detection.ts';
import { uuidParams } from '../schemas/list.ts';

const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;
const policyPath = '/operator/detection-policy';
const exporterPath = '/operator/exporter';
const detectorPath = '/operator/detector';

export const detectionOperations: readonly Operation[] = [
  {
    ...operator,
    id: 'createDetectionPolicy',
    method: 'POST',
    path: policyPath,
    summary: 'Say from which traffic on a destination is attacked, and what is done then',
    description:
      'One policy a scope (409). Detectors go by it within a second. What is absent has its default, but thresholds: those of a ' +
      "vector come from the next wider policy. An account's policy goes with the account; a subnet's stays when the " +
      'addresses go to another provider, and means nothing while nobody holds them.',
    access: 'write',
    body: policyCreate,
    answer: policy,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: {
      body: {
        scope: '203.0.113.0/28',
        thresholds: { 'tcp-syn': { pps: 20000 }, total: { pps: 500000, bps: 5000000000 } },
        mitigation: 'edge',
        hold_s: 60,
      },
    },
  },
  {
    ...operator,
    id: 'listDetectionPolicies',
    method: 'GET',
    path: policyPath,
    summary: 'List detection policies',
    description: 'In order of creation.',
    access: 'read',
    answer: Type.Array(policy),
    errors: [],
  },
  {
    ...operator,
    id: 'readDetectionPolicy',
    method: 'GET',
    path: `${policyPath}/{uuid}`,
    summary: 'Read one detection policy',
    access: 'read',
    params: uuidParams,
    answer: policy,
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...operator,
    id: 'changeDetectionPolicy',
    method: 'PATCH',
    path: `${policyPath}/{uuid}`,
    summary: 'Change a detection policy',
    description:
      'What is absent stays; `thresholds` are replaced whole. Attacks that go on are judged by it from then on, and within a second ' +
      'measures that stand are changed, made or taken back as it has it, by what was told of each attack last, whether or not a ' +
      'detector is there. Of attacks that have ended, what it allows no more is taken back.',
    access: 'write',
    params: uuidParams,
    body: policyChange,
    answer: policy,
    errors: ['validation_failed', 'not_found'],
    example: { body: { mitigation: 'flowspec' } },
  },
  {
    ...operator,
    id: 'deleteDetectionPolicy',
    method: 'DELETE',
    path: `${policyPath}/{uuid}`,
    summary: 'Remove a detection policy',
    description: 'The next wider one is in force from then on, for measures that stand too, within a second.',
    access: 'write',
    params: uuidParams,
    answer: removedDetection,
    errors: ['not_found'],
  },
  {
    id: 'readEffectiveDetectionPolicy',
    method: 'GET',
    path: '/detection-policy',
    tag: 'extension',
    roles: ['provider', 'user'],
    roleError: 'provider_key_required',
    summary: 'Read from which traffic on a destination is attacked',
    description:
      "All that is in force for an address or a subnet of one's own, and for which scope the policy is that says it: " +
      '`installation`, `provider`, `user`, or a subnet.',
    access: 'read',
    query: effectivePolicyQuery,
    answer: effectivePolicy,
    errors: ['validation_failed', 'ip_not_allowed'],
  },
  {
    ...operator,
    id: 'createExporter',
    method: 'POST',
    path: exporterPath,
    summary: 'Name a router or a probe whose flow telemetry is taken',
    description:
      'sFlow v5, NetFlow v5 and v9, IPFIX and PSAMP are told apart by themselves. What comes from an address that is not ' +
      "named here is counted, shown and thrown away, unless it comes from the detector's own machine.",
    access: 'write',
    body: exporterCreate,
    answer: exporter,
    errors: ['validation_failed', 'conflict'],
    example: { body: { name: 'edge1', source: '192.0.2.1', sampling: 'auto', interfaces: [1, 2] } },
  },
  {
    ...operator,
    id: 'listExporters',
    method: 'GET',
    path: exporterPath,
    summary: 'List exporters and how their telemetry does',
    description:
      'Those that are configured in order of creation, then addresses that send without being configured. `live` is what ' +
      'detectors told last, of all replicas.',
    access: 'read',
    answer: Type.Array(exporterInList),
    errors: [],
  },
  {
    ...operator,
    id: 'readExporter',
    method: 'GET',
    path: `${exporterPath}/{uuid}`,
    summary: 'Read one exporter and how its telemetry does',
    access: 'read',
    params: uuidParams,
    answer: exporter,
    entityTag: true,
    errors: ['not_found'],
  },
  {
    ...operator,
    id: 'changeExporter',
    method: 'PATCH',
    path: `${exporterPath}/{uuid}`,
    summary: 'Change how an exporter is taken',
    description: 'What is absent stays.',
    access: 'write',
    params: uuidParams,
    body: exporterChange,
    answer: exporter,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: { body: { sampling: 1024 } },
  },
  {
    ...operator,
    id: 'deleteExporter',
    method: 'DELETE',
    path: `${exporterPath}/{uuid}`,
    summary: 'Take no more telemetry of an exporter',
    access: 'write',
    params: uuidParams,
    answer: removedDetection,
    errors: ['not_found'],
  },
  {
    ...operator,
    id: 'createDetector',
    method: 'POST',
    path: detectorPath,
    summary: 'Announce a detector and get its key',
    description:
      'For `levee detect` on another machine: its key goes into `LEVEE_DETECT_KEY`, and is shown this once. The detector that ' +
      '`npm start` runs beside the control plane announces itself.',
    access: 'write',
    body: detectorCreate,
    answer: detectorCreated,
    errors: ['validation_failed', 'conflict'],
    example: { body: { name: 'detect1' } },
  },
  {
    ...operator,
    id: 'listDetectors',
    method: 'GET',
    path: detectorPath,
    summary: 'List detectors',
    description: 'In order of creation, with when each was last heard of.',
    access: 'read',
    answer: Type.Array(detector),
    errors: [],
  },
  {
    ...operator,
    id: 'readDetector',
    method: 'GET',
    path: `${detectorPath}/{uuid}`,
    summary: 'Read one detector',
    access: 'read',
    params: uuidParams,
    answer: detector,
    entityTag: true,
    errors: ['not_found'],
  },
  {
    ...operator,
    id: 'deleteDetector',
    method: 'DELETE',
    path: `${detectorPath}/{uuid}`,
    summary: 'Remove a detector',
    description:
      'Its key stops working and its stream ends. Attacks that it found stay, and another detector takes over those that go ' +
      'on. The detector of this very machine is made again, with another key, when `levee up` starts next.',
    access: 'write',
    params: uuidParams,
    answer: removedDetection,
    errors: ['not_found'],
  },
];
