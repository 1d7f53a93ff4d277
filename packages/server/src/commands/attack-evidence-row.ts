/**
 * What is kept of an attack as one read gives it to http: SQL parts for the one statement that reads an attack, and their
 * shapes. Renders nothing; `attack-evidence.ts` writes it.
 */

import type { TimelineEntry, VectorProfile } from '@levee/contract/detector.ts';
import type { MeasureNote } from '@levee/core/mitigation/measure.ts';
import { type FlowruleSpeaker, speakerColumn } from './flowrule-row.ts';

/** Of packets that one read of the attack shows. */
export const PACKETS_SHOWN = 100;

export interface EvidenceRow {
  readonly measured_ms: number;
  readonly packets: number;
  readonly bytes: number;
  readonly sampled: number;
  readonly profile: readonly VectorProfile[];
  /** Of the profile the rates alone are the holder's. */
  readonly narrowed: boolean;
  readonly entries: readonly { readonly exporter: string; readonly interface?: number; readonly share: number }[];
}

export interface PacketRow {
  readonly at_ms: number;
  readonly scale: number;
  readonly exporter: string;
  readonly interface: number | null;
  readonly length: number;
  /** Base64. */
  readonly header: string;
}

interface MeasureRow {
  readonly uuid: string;
  /** `vector: what of it`; null: an operator made it for the attack. */
  readonly purpose: string | null;
  readonly change_position: number;
  readonly deleted: boolean;
}

export interface RuleMeasureRow extends MeasureRow {
  readonly change_xid: string;
  readonly updated_ms: number;
}

export interface FlowruleMeasureRow extends MeasureRow {
  readonly held: string | null;
  readonly failure: string | null;
  readonly applied_position: number | null;
  readonly applied_ms: number | null;
  readonly speaker: FlowruleSpeaker | null;
}

/** Each null or empty where there is none. */
export interface EvidenceColumns {
  readonly evidence: EvidenceRow | null;
  readonly timeline: readonly TimelineEntry[];
  readonly packet_samples: readonly PacketRow[];
  /** Address → name, of exporters that are configured now. */
  readonly exporters: Readonly<Record<string, string>>;
  readonly flowrule_measures: readonly FlowruleMeasureRow[];
  readonly rule_measures: readonly RuleMeasureRow[];
  /** What could not be said where. */
  readonly measure_notes: readonly MeasureNote[];
}

const ms = (column: string) => `round(date_part('epoch', ${column}) * 1000)`;
/** Within a line, without the breaks that `encode` makes. */
export const headerText = `translate(encode(p.header, 'base64'), E'\\n', '')`;

const packetJson = `json_build_object('at_ms', ${ms('p.at')}, 'scale', p.scale, 'exporter', p.exporter,
    'interface', p.interface, 'length', p.length, 'header', ${headerText})`;

/** Of `attack r`. */
export const evidenceColumns = `(select json_build_object('measured_ms', ${ms('e.measured_at')}, 'packets', e.packets,
      'bytes', e.bytes, 'sampled', e.sampled, 'profile', e.profile, 'narrowed', e.narrowed, 'entries', e.entries)
    from attack_evidence e where e.attack_uuid = r.uuid) as evidence,
  coalesce((select json_agg(json_build_object('at_ms', ${ms('t.at')}, 'seconds', t.seconds, 'pps', t.pps, 'bps', t.bps,
      'vectors', t.vectors) order by t.at, t.seconds desc) from attack_timeline t where t.attack_uuid = r.uuid), '[]') as timeline,
  coalesce((select json_agg(${packetJson} order by p.at, p.mark) from (
      select *, row_number() over (order by at, mark) - 1 as place, count(*) over () as total
      from attack_packet where attack_uuid = r.uuid
    ) p where p.place % greatest(1, ceil(p.total / ${PACKETS_SHOWN}.0)::int8) = 0), '[]') as packet_samples,
  coalesce((select json_object_agg(host(x.source), x.name) from exporter x), '{}') as exporters,
  coalesce((select json_agg(json_build_object('uuid', f.uuid, 'purpose', f.purpose, 'held', f.held, 'failure', f.failure,
      'applied_position', f.applied_position, 'applied_ms', ${ms('f.applied_at')}, 'speaker', ${speakerColumn}, 'change_position', f.change_position,
      'deleted', f.deletion_marked_at is not null) order by f.sequence)
    from flowrule f where f.attack_uuid = r.uuid), '[]') as flowrule_measures,
  coalesce((select json_agg(json_build_object('uuid', u.uuid, 'purpose', u.purpose, 'change_xid', u.change_xid::text,
      'change_position', u.change_position, 'updated_ms', ${ms('u.updated_at')},
      'deleted', u.deletion_marked_at is not null) order by u.sequence)
    from firewall_rule u where u.attack_uuid = r.uuid), '[]') as rule_measures,
  r.measure_notes`;
