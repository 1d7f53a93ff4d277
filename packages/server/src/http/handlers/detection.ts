/** From requests about detection to commands, and from rows to answers. Decides nothing itself. */
import type { AuditKind } from '@levee/contract/schemas/audit.ts';
import { policyDefaults } from '@levee/contract/schemas/detection.ts';
import { effectivePolicy } from '@levee/core/detection/policy.ts';
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { senderlessOf } from '@levee/core/net/special-purpose.ts';
import { problem } from '@levee/core/problem.ts';
import type pg from 'pg';
import type { AuditEntry } from '../../commands/audit.ts';
import {
  changePolicy,
  createPolicy,
  deletePolicy,
  listPolicies,
  type PolicyFields,
  type PolicyRow,
  type PolicyScope,
  policiesInForce,
  readPolicy,
} from '../../commands/detection-policy.ts';
import { executorOf } from '../../commands/executor.ts';
import {
  changeExporter,
  createExporter,
  deleteExporter,
  type ExporterFields,
  type ExporterRow,
  listExporters,
  readExporter,
  readFigures,
} from '../../commands/exporters.ts';
import { refuse } from '../../commands/outcome.ts';
import { holds } from '../../commands/own-space.ts';
import type { Cursor } from '../../store/cursor.ts';
import { createDetector, listDetectors, readDetector, removeDetector } from '../../store/detectors.ts';
import { type Call, type Handler, isSound, judgedBy, membersOf, type Wrote } from '../call.ts';
import { detectorJson, effectiveJson, exporterJson, policyJson, unknownExporterJson } from '../detection-answer.ts';
import { isUuid } from '../uuid-text.ts';

export interface DetectionServices {
  readonly pool: pg.Pool;
}

/** The log has something new: that it is woken is all that matters, nobody waits for the place. */
const anyChange: Cursor = { xid: 0, position: 0 };

export function detectionHandlers(services: DetectionServices): Record<string, Handler> {
  return { ...policyHandlers(services), ...exporterHandlers(services), ...detectorHandlers(services) };
}

function policyHandlers({ pool }: DetectionServices): Record<string, Handler> {
  return {
    createDetectionPolicy: {
      write: {
        judge: (call, found) => judgeScope(call, isSound(found, '/scope')),
        async run(call, executor, scope: PolicyScope) {
          const outcome = await createPolicy(executor, scope, call.body as PolicyFields);
          if (!outcome.ok) return outcome;
          return wrote(policyJson(outcome.value), policyEntry(undefined, outcome.value));
        },
      },
    },
    listDetectionPolicies: {
      async read() {
        return answered((await listPolicies(executorOf(pool))).map(policyJson));
      },
    },
    readDetectionPolicy: {
      async read(call) {
        const uuid = uuidOf(call);
        const found = uuid === undefined ? undefined : await readPolicy(executorOf(pool), uuid);
        return found === undefined ? refuse('not_found') : answered(policyJson(found));
      },
    },
    changeDetectionPolicy: {
      write: {
        async run(call, executor) {
          const uuid = uuidOf(call);
          if (uuid === undefined) return refuse('not_found');
          const outcome = await changePolicy(executor, uuid, call.body as PolicyFields);
          if (!outcome.ok) return outcome;
          const { before, after } = outcome.value;
          return wrote(policyJson(after), policyEntry(before, after));
        },
      },
    },
    deleteDetectionPolicy: {
      write: {
        async run(call, executor) {
          const uuid = uuidOf(call);
          const outcome = uuid === undefined ? refuse('not_found') : await deletePolicy(executor, uuid);
          if (!outcome.ok) return outcome;
          const message = 'The policy is removed: the next wider one is in force.';
          return wrote({ uuid, message }, policyEntry(outcome.value, undefined));
        },
      },
    },
    readEffectiveDetectionPolicy: {
      judge(call) {
        const { dst } = call.query;
        const parsed = typeof dst === 'string' ? parsePrefix(dst) : undefined;
        if (parsed === undefined) return { ok: true };
        if (!parsed.ok) return judgedBy([{ ...problem(['dst'], parsed.code, parsed.sentence), field: '?dst' }]);
        return judgedBy([], formatPrefix(parsed.prefix));
      },
      async read(call, judged) {
        const dst = judged as string;
        const executor = executorOf(pool);
        if (!(await holds(executor, call.caller, dst))) {
          const message = `dst: ${dst} is not within the caller's addresses`;
          return refuse('ip_not_allowed', { field: '?dst', code: 'ip_not_allowed', message });
        }
        const policies = await policiesInForce(executor, dst);
        const effective = effectivePolicy(
          policies.map(({ uuid, rank, settings: { thresholds, aggregate_thresholds, hold_s, baseline_factor } }) => ({
            uuid,
            subnets: [],
            rank,
            thresholds,
            ...(aggregate_thresholds !== undefined && { aggregate_thresholds }),
            hold_s,
            baseline_factor,
          })),
        );
        return answered(effectiveJson(dst, effective, policies[0]?.settings ?? policyDefaults, policies));
      },
    },
  };
}

function exporterHandlers({ pool }: DetectionServices): Record<string, Handler> {
  return {
    createExporter: {
      write: {
        judge: judgeSource,
        async run(call, executor, source: string) {
          const { name, ...fields } = call.body as ExporterFields & { name: string };
          const row = await createExporter(executor, { ...fields, name, source });
          return wrote(exporterJson(row, undefined), exporterEntry(undefined, row));
        },
      },
    },
    listExporters: {
      async read() {
        const executor = executorOf(pool);
        const figures = new Map(await readFigures(executor));
        const configured = (await listExporters(executor)).map((row) => {
          const live = figures.get(row.source);
          figures.delete(row.source);
          return exporterJson(row, live);
        });
        return answered([...configured, ...[...figures.values()].map(unknownExporterJson)]);
      },
    },
    readExporter: {
      async read(call) {
        const uuid = uuidOf(call);
        const executor = executorOf(pool);
        const row = uuid === undefined ? undefined : await readExporter(executor, uuid);
        if (row === undefined) return refuse('not_found');
        return answered(exporterJson(row, (await readFigures(executor, row.source)).get(row.source)));
      },
    },
    changeExporter: {
      write: {
        judge: judgeSource,
        async run(call, executor, source: string | undefined) {
          const uuid = uuidOf(call);
          if (uuid === undefined) return refuse('not_found');
          const outcome = await changeExporter(executor, uuid, { ...(call.body as ExporterFields), source });
          if (!outcome.ok) return outcome;
          const { before, after } = outcome.value;
          const live = (await readFigures(executor, after.source)).get(after.source);
          return wrote(exporterJson(after, live), exporterEntry(before, after));
        },
      },
    },
    deleteExporter: {
      write: {
        async run(call, executor) {
          const uuid = uuidOf(call);
          const outcome = uuid === undefined ? refuse('not_found') : await deleteExporter(executor, uuid);
          if (!outcome.ok) return outcome;
          const message = 'The exporter is removed: what it sends from now on is counted and thrown away.';
          return wrote({ uuid, message }, exporterEntry(outcome.value, undefined));
        },
      },
    },
  };
}

function detectorHandlers({ pool }: DetectionServices): Record<string, Handler> {
  return {
    createDetector: {
      write: {
        async run(call, executor) {
          const { name } = call.body as { name: string };
          const { detector, key } = await createDetector(executor.client, name);
          const json = detectorJson(detector);
          return wrote({ ...json, key }, entry('detector', detector.uuid, undefined, json));
        },
      },
    },
    listDetectors: {
      async read() {
        return answered((await listDetectors(pool)).map(detectorJson));
      },
    },
    readDetector: {
      async read(call) {
        const uuid = uuidOf(call);
        const row = uuid === undefined ? undefined : await readDetector(pool, uuid);
        return row === undefined ? refuse('not_found') : answered(detectorJson(row));
      },
    },
    deleteDetector: {
      write: {
        async run(call, executor) {
          const uuid = uuidOf(call);
          const gone = uuid === undefined ? undefined : await removeDetector(executor.client, uuid);
          if (gone === undefined) return refuse('not_found');
          const message = 'The detector is removed: its key is void and its stream has ended.';
          const { uuid: was, name, created_at } = gone;
          const before = { uuid: was, name, created_at: created_at.toISOString() };
          return wrote({ uuid: was, message }, entry('detector', was, before, undefined));
        },
      },
    },
  };
}

function answered(value: unknown) {
  return { ok: true, answer: { body: JSON.stringify(value) } } as const;
}

function wrote(value: object, audit: AuditEntry): Wrote {
  return { ok: true, value: { change: anyChange, render: () => JSON.stringify(value), audit: [audit] } };
}

/** All of it is the installation's. */
function entry(kind: AuditKind, uuid: string, before: object | undefined, after: object | undefined): AuditEntry {
  return { kind, uuid, ownerUuid: null, providerUuid: null, before, after };
}

function policyEntry(before: PolicyRow | undefined, after: PolicyRow | undefined): AuditEntry {
  const audited = (row: PolicyRow | undefined) => row && { scope: row.scope, ...row.settings };
  return entry('detection_policy', (after ?? before)?.uuid ?? '', audited(before), audited(after));
}

function exporterEntry(before: ExporterRow | undefined, after: ExporterRow | undefined): AuditEntry {
  const audited = (row: ExporterRow | undefined) => {
    if (row === undefined) return undefined;
    const { name, source, sampling, interfaces } = row;
    return { name, source, sampling, ...(interfaces !== null && { interfaces }) };
  };
  return entry('exporter', (after ?? before)?.uuid ?? '', audited(before), audited(after));
}

function uuidOf(call: Call): string | undefined {
  const uuid = call.params.uuid ?? '';
  return isUuid(uuid) ? uuid.toLowerCase() : undefined;
}

function judgeScope(call: Call, isText: boolean) {
  const { scope } = membersOf(call.body);
  if (!isText || typeof scope !== 'string') return { ok: true } as const;
  if (scope === 'installation') return judgedBy([], { kind: 'installation' } satisfies PolicyScope);
  if (isUuid(scope)) return judgedBy([], { kind: 'account', uuid: scope.toLowerCase() } satisfies PolicyScope);
  const parsed = parsePrefix(scope);
  if (parsed.ok) return judgedBy([], { kind: 'subnet', subnet: formatPrefix(parsed.prefix) } satisfies PolicyScope);
  const sentence = `${parsed.sentence}; a scope is \`installation\`, the uuid of a provider or a user, or an address or subnet`;
  return judgedBy([problem(['scope'], parsed.code, sentence)]);
}

/** Undefined: there is none in the body. */
function judgeSource(call: Call) {
  const { source } = membersOf(call.body);
  if (typeof source !== 'string' || source === '') return { ok: true } as const;
  const parsed = parseAddress(source);
  if (!parsed.ok) return judgedBy([problem(['source'], parsed.code, parsed.sentence)]);
  const senderless = senderlessOf(parsed.address);
  if (senderless !== undefined) {
    const sentence = `must be an address that datagrams can come from; ${formatAddress(parsed.address)} is ${senderless}`;
    return judgedBy([problem(['source'], 'not_allowed', sentence)]);
  }
  return judgedBy([], formatAddress(parsed.address));
}
