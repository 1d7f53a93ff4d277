/** Owns what several workers' words on the same exporters come to. Pure. */
import type { ExporterStatus } from '@levee/contract/detector.ts';

/** By uuid and source; unknown sources last, and of all at most `most`. */
export function mergeExporters(told: Iterable<readonly ExporterStatus[]>, most = 1_000): ExporterStatus[] {
  const merged = new Map<string, ExporterStatus>();
  for (const statuses of told) {
    for (const status of statuses) {
      const key = `${status.uuid ?? ''} ${status.source}`;
      const known = merged.get(key);
      merged.set(key, known === undefined ? status : sum(known, status));
    }
  }
  const all = [...merged.values()];
  return [
    ...all.filter(({ uuid }) => uuid !== undefined),
    ...all.filter(({ uuid }) => uuid === undefined).sort((one, other) => other.last_seen_ms - one.last_seen_ms),
  ].slice(0, most);
}

/** Its rates are over; its counts stay. */
export function withoutRates(status: ExporterStatus): ExporterStatus {
  return { ...status, datagrams_per_second: 0, records_per_second: 0, templates: 0 };
}

function sum(one: ExporterStatus, other: ExporterStatus): ExporterStatus {
  const later = other.last_seen_ms > one.last_seen_ms ? other : one;
  const dropped = { ...one.dropped };
  for (const [reason, count] of Object.entries(other.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count;
  const merged: ExporterStatus = {
    source: one.source,
    last_seen_ms: later.last_seen_ms,
    protocols: [...new Set([...one.protocols, ...other.protocols])],
    datagrams: one.datagrams + other.datagrams,
    records: one.records + other.records,
    datagrams_per_second: one.datagrams_per_second + other.datagrams_per_second,
    records_per_second: one.records_per_second + other.records_per_second,
    templates: one.templates + other.templates,
    dropped,
    lost: one.lost + other.lost,
  };
  if (one.uuid !== undefined) merged.uuid = one.uuid;
  const rate = later.sampling_rate ?? one.sampling_rate ?? other.sampling_rate;
  if (rate !== undefined) merged.sampling_rate = rate;
  const longest = Math.max(one.longest_flow_s ?? 0, other.longest_flow_s ?? 0);
  if (longest > 0) merged.longest_flow_s = longest;
  return merged;
}
