/** Detection as it is answered: policies, exporters with what is heard of them, detectors. Reads nothing. */

import type { EffectivePolicy, Threshold } from '@levee/core/detection/policy.ts';
import type { Vector } from '@levee/core/detection/vector.ts';
import { vectors } from '@levee/core/detection/vector.ts';
import type { PolicyInForce, PolicyRow, PolicySettings } from '../commands/detection-policy.ts';
import type { ExporterRow, LiveFigures } from '../commands/exporters.ts';
import type { DetectorRow } from '../store/detectors.ts';

const timeText = (milliseconds: number) => new Date(milliseconds).toISOString();

export function policyJson({ uuid, scope, settings, created_ms, updated_ms }: PolicyRow): object {
  return { uuid, scope, ...settings, created_at: timeText(created_ms), updated_at: timeText(updated_ms) };
}

export function effectiveJson(
  dst: string,
  { thresholds, aggregateThresholds, holdSeconds, baselineFactor }: EffectivePolicy,
  rest: Pick<PolicySettings, 'mitigation' | 'mitigation_hold_s' | 'override_accept' | 'allow_rtbh'>,
  policies: readonly PolicyInForce[],
): object {
  const names = new Map(policies.map(({ uuid, rank, subnet }) => [uuid, subnet ?? ranks[rank] ?? 'default']));
  const byVector = (all: readonly Threshold[]): Record<Vector, object> =>
    Object.fromEntries(
      vectors.map((name, number) => {
        const { policy = 'default', pps, bps } = all[number] ?? {};
        const limits = { ...(pps !== undefined && { pps }), ...(bps !== undefined && { bps }) };
        return [name, { policy: names.get(policy) ?? 'default', ...limits }];
      }),
    ) as Record<Vector, object>;
  const { mitigation, mitigation_hold_s, override_accept, allow_rtbh } = rest;
  return {
    dst,
    thresholds: byVector(thresholds),
    aggregate_thresholds: byVector(aggregateThresholds),
    mitigation,
    hold_s: holdSeconds,
    baseline_factor: baselineFactor,
    mitigation_hold_s,
    override_accept,
    allow_rtbh,
  };
}

const ranks = ['installation', 'provider', 'user'] as const;

export function exporterJson(row: ExporterRow, live: LiveFigures | undefined): object {
  const { uuid, name, source, sampling, interfaces, created_ms, updated_ms } = row;
  return {
    uuid,
    name,
    source,
    sampling,
    ...(interfaces !== null && { interfaces }),
    created_at: timeText(created_ms),
    updated_at: timeText(updated_ms),
    ...(live !== undefined && { live: liveJson(live) }),
  };
}

/** Of an address that nobody configured. */
export function unknownExporterJson(live: LiveFigures): object {
  const { source } = live;
  return { source, [isLoopback(source) ? 'local' : 'unknown']: true, live: liveJson(live) };
}

function longFlows(seconds: number): string {
  return `Flows last up to ${seconds} s before it tells of them: its active timeout is too long for quick detection, set 10 s, or at most 60.`;
}

/** Loopback is another machine for each collector. */
function isLoopback(source: string): boolean {
  return source.startsWith('127.') || source === '::1';
}

function warningOf({ source, longest_flow_s, hearing }: LiveFigures): string | undefined {
  const warnings = [
    ...(longest_flow_s === undefined ? [] : [longFlows(longest_flow_s)]),
    ...(hearing.length < 2 || isLoopback(source) ? [] : [heardBySeveral(hearing)]),
  ];
  return warnings.length === 0 ? undefined : warnings.join(' ');
}

function heardBySeveral(collectors: readonly string[]): string {
  return `${collectors.length} collectors hear it at the same time (${collectors.join(', ')}): what it sends to more than one of them is counted as often, in detection too. Let it send to one.`;
}

function liveJson(live: LiveFigures): object {
  const { datagrams_per_second, records_per_second, sampling_rate, longest_flow_s } = live;
  const warning = warningOf(live);
  return {
    told_at: timeText(live.told_ms),
    last_seen_at: timeText(live.last_seen_ms),
    protocols: live.protocols,
    datagrams: live.datagrams,
    records: live.records,
    ...(datagrams_per_second !== undefined && { datagrams_per_second }),
    ...(records_per_second !== undefined && { records_per_second }),
    templates: live.templates,
    ...(sampling_rate !== undefined && { sampling_rate }),
    ...(longest_flow_s !== undefined && { longest_flow_s }),
    ...(warning !== undefined && { warning }),
    dropped: live.dropped,
    lost: live.lost,
    detectors: live.detectors,
    collectors: live.collectors,
  };
}

export function detectorJson({ uuid, name, created_at, last_seen_at, status }: DetectorRow): object {
  return {
    uuid,
    name,
    created_at: created_at.toISOString(),
    ...(last_seen_at !== null && { last_seen_at: last_seen_at.toISOString() }),
    ...(status !== null && { status }),
  };
}
