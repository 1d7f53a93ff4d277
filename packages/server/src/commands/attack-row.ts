/**
 * The attack as rows give it to http and commands. Owns the columns that are selected and the shape of what is stored
 * as `details`; renders nothing.
 */
import type { EndReason } from '@levee/core/attack/placement.ts';
import { subnetText } from '../store/subnet-text.ts';
import { milliseconds } from './stored-row.ts';

/** What is known beyond the columns, in the wire's form: it is answered as it was told. */
export interface AttackDetails {
  readonly descr?: string;
  readonly packets?: number;
  readonly bytes?: number;
  readonly threshold?: {
    readonly policy?: string;
    readonly metric: string;
    readonly value?: number;
    readonly observed?: number;
  };
  readonly top_sources?: readonly ({ readonly source: string } & Traffic)[];
  readonly top_ports?: { readonly src?: readonly PortTraffic[]; readonly dst?: readonly PortTraffic[] };
  readonly actions?: readonly { readonly at?: string; readonly action: string; readonly descr?: string }[];
  readonly timings?: Readonly<Partial<Record<'detect_ms' | 'decide_ms' | 'announce_ms' | 'enforce_ms', number>>>;
}

interface Traffic {
  readonly packets?: number;
  readonly bytes?: number;
  /** Of all the packets, 0 to 1. */
  readonly share?: number;
}

type PortTraffic = { readonly port: number } & Traffic;

/** In the order in which they are answered. */
export const detailNames = [
  'descr',
  'packets',
  'bytes',
  'threshold',
  'top_sources',
  'top_ports',
  'actions',
  'timings',
] as const satisfies readonly (keyof AttackDetails)[];

export type Mitigation = 'observe' | 'edge' | 'flowspec' | 'rtbh';

export interface AttackRow {
  readonly uuid: string;
  readonly sequence: number;
  readonly owner_uuid: string;
  readonly provider_uuid: string;
  /** Canonical. */
  readonly dst: string;
  readonly source: string;
  readonly external_id: string | null;
  /** The attack on the whole subnet of which this is one holder's share. */
  readonly part_of: string | null;
  readonly vectors: readonly string[];
  /** Milliseconds since 1970, as the others. */
  readonly started_ms: number;
  readonly ended_ms: number | null;
  readonly end_reason: EndReason | null;
  readonly last_reported_ms: number;
  readonly peak_pps: number;
  readonly peak_bps: number;
  readonly mitigation: Mitigation;
  /** Null: nothing is known of it. */
  readonly timings: NonNullable<AttackDetails['timings']> | null;
  readonly created_ms: number;
  readonly updated_ms: number;
  readonly change_xid: number;
  readonly change_position: number;
}

/** What was measured here before what its source told. */
const timings = `coalesce((select json_strip_nulls(json_build_object('detect_ms', t.detect_ms, 'decide_ms', t.decide_ms,
    'announce_ms', t.announce_ms, 'enforce_ms', t.enforce_ms)) from attack_timing t where t.attack_uuid = r.uuid),
    r.details->'timings')`;

/** Of `attack r`, without the details. */
export const attackColumns = `r.uuid::text as uuid, r.sequence, r.owner_uuid::text as owner_uuid,
  r.provider_uuid::text as provider_uuid, ${subnetText('r.dst')} as dst, r.source, r.external_id,
  r.part_of::text as part_of, r.vectors,
  ${milliseconds('r.started_at')} as started_ms, ${milliseconds('r.ended_at')} as ended_ms, r.end_reason,
  ${milliseconds('r.last_reported_at')} as last_reported_ms, r.peak_pps, r.peak_bps, r.mitigation,
  ${timings} as timings, ${milliseconds('r.created_at')} as created_ms, ${milliseconds('r.updated_at')} as updated_ms,
  r.change_xid::text::int8 as change_xid, r.change_position`;
