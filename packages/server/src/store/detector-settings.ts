/**
 * What detectors are to know, as the database has it now: protected space, policies, exporters, what goes on, what is
 * usual. Changes what is usual, and nothing else.
 */
import type {
  BaselineEntry,
  DetectionPolicySettings,
  ExporterSettings,
  OngoingAttack,
} from '@levee/contract/detector.ts';
import type pg from 'pg';
import type { Statements } from './change-log.ts';
import { subnetText } from './subnet-text.ts';

/**
 * Taken before what it is the revision of is read: whatever a lower one has, this has too, or what is newer comes by the change log.
 * Each is used once, on all replicas.
 */
export async function nextRevision(db: Statements): Promise<number> {
  const { rows } = await (db as pg.ClientBase).query<{ revision: number }>({
    name: 'detector_revision',
    text: `select nextval('detector_settings_revision')::float8 as revision`,
  });
  const [row] = rows;
  if (row === undefined) throw new Error('a sequence gave no value');
  return row.revision;
}

export interface StandingSettings {
  readonly prefixes: string[];
  readonly policies: DetectionPolicySettings[];
  readonly exporters: ExporterSettings[];
}

const PREFIXES = `select ${subnetText('subnet')} as subnet from subnet where role = 'provider' order by subnet.subnet`;

/** 0 installation, 1 provider, 2 user, 3 subnet. */
export const policyRank = `case when p.subnet is not null then 3 when a.role = 'user' then 2
    when a.role = 'provider' then 1 else 0 end`;

/** A subnet that nobody holds is left out: there is no traffic to it that anybody looks at. */
const POLICIES = `select p.uuid::text as uuid, ${policyRank} as rank, p.settings,
    case when p.subnet is not null then array[${subnetText('p.subnet')}]
      else array(select ${subnetText('s.subnet')} from subnet s where s.account_uuid = p.account_uuid order by s.subnet) end as subnets
  from detection_policy p left join account a on a.uuid = p.account_uuid
  where p.subnet is null or exists (select from subnet s where s.role = 'provider' and s.subnet && p.subnet)
  order by p.sequence`;

const EXPORTERS = `select uuid::text as uuid, name, host(source) as source, sampling, to_json(interfaces) as interfaces
  from exporter order by sequence`;

/** Throws what the driver throws; in a statement each, so a change between them is told by the next reading. */
export async function readStandingSettings(db: Statements): Promise<StandingSettings> {
  const client = db as pg.ClientBase;
  const prefixes = await client.query<{ subnet: string }>({ name: 'detector_prefixes', text: PREFIXES });
  const policies = await client.query<{
    uuid: string;
    rank: number;
    subnets: string[];
    settings: Pick<DetectionPolicySettings, 'thresholds' | 'aggregate_thresholds' | 'hold_s' | 'baseline_factor'>;
  }>({ name: 'detector_policies', text: POLICIES });
  const exporters = await client.query<{
    uuid: string;
    name: string;
    source: string;
    sampling: string;
    interfaces: number[] | null;
  }>({ name: 'detector_exporters', text: EXPORTERS });
  return {
    prefixes: prefixes.rows.map(({ subnet }) => subnet),
    policies: policies.rows.map(({ uuid, rank, subnets, settings }) => ({
      uuid,
      subnets,
      rank,
      thresholds: settings.thresholds,
      ...(settings.aggregate_thresholds !== undefined && { aggregate_thresholds: settings.aggregate_thresholds }),
      hold_s: settings.hold_s,
      baseline_factor: settings.baseline_factor,
    })),
    exporters: exporters.rows.map(({ uuid, name, source, sampling, interfaces }) => ({
      uuid,
      name,
      source,
      sampling: samplingOf(sampling),
      ...(interfaces !== null && { interfaces }),
    })),
  };
}

export function samplingOf(text: string): ExporterSettings['sampling'] {
  return text === 'auto' || text === 'prescaled' ? text : Number(text);
}

/**
 * When it was found is told with it; an attack without is one that another holder of the address had before. What was told of it
 * last goes back, so that totals do not begin anew with a detector.
 */
const ONGOING = `select distinct on (a.external_id) a.external_id as id, ${subnetText('a.dst')} as dst, a.vectors,
    (extract(epoch from a.started_at) * 1000)::float8 as started_ms,
    coalesce((extract(epoch from a.started_at) * 1000)::float8 + (a.details->'timings'->>'detect_ms')::float8,
      (extract(epoch from a.created_at) * 1000)::float8) as detected_ms,
    case when e.attack_uuid is not null and a.details->'threshold' is not null then json_build_object(
      'packets', e.packets + former.packets, 'bytes', e.bytes + former.bytes, 'sampled', e.sampled + former.sampled,
      'threshold', json_build_object('policy', a.details->'threshold'->>'policy',
        'vector', split_part(a.details->'threshold'->>'metric', ' ', 1),
        'metric', split_part(a.details->'threshold'->>'metric', ' ', 2),
        'value', a.details->'threshold'->'value', 'observed', a.details->'threshold'->'observed')) end as told
  from attack a left join attack_evidence e on e.attack_uuid = a.uuid
  cross join lateral (
    select coalesce(sum(x.packets), 0)::int8 as packets, coalesce(sum(x.bytes), 0)::int8 as bytes,
      coalesce(sum(x.sampled), 0)::int8 as sampled
    from attack f join attack_evidence x on x.attack_uuid = f.uuid
    where f.source = a.source and f.external_id = a.external_id and f.uuid <> a.uuid
  ) former
  where a.source = 'levee' and a.ended_at is null and a.external_id is not null
  order by a.external_id, a.started_at`;

type OngoingRow = Omit<OngoingAttack, 'told'> & { readonly told: OngoingAttack['told'] | null };

export async function readOngoing(db: Statements): Promise<OngoingAttack[]> {
  const { rows } = await (db as pg.ClientBase).query<OngoingRow>({ name: 'detector_ongoing', text: ONGOING });
  return rows.map(({ told, ...attack }) => (told === null || told === undefined ? attack : { ...attack, told }));
}

const BASELINES = `select ${subnetText('dst')} as dst, vector, hour, pps, bps, weight from detection_baseline
  order by updated_at desc limit $1`;

/** The newest; canonical destinations. */
export async function readBaselines(db: Statements, most: number): Promise<BaselineEntry[]> {
  const { rows } = await (db as pg.ClientBase).query<BaselineEntry>({
    name: 'detector_baselines',
    text: BASELINES,
    values: [most],
  });
  return rows;
}

const SAVE_BASELINES = `insert into detection_baseline (dst, vector, hour, pps, bps, weight, updated_at)
  select distinct on (b.dst, b.vector, b.hour) b.dst, b.vector, b.hour, b.pps, b.bps, b.weight, now()
  from unnest($1::cidr[], $2::text[], $3::int2[], $4::float8[], $5::float8[], $6::float8[])
    as b (dst, vector, hour, pps, bps, weight)
  order by b.dst, b.vector, b.hour
  on conflict (dst, vector, hour) do update
    set pps = excluded.pps, bps = excluded.bps, weight = excluded.weight, updated_at = excluded.updated_at`;

export async function saveBaselines(db: Statements, entries: readonly BaselineEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await (db as pg.ClientBase).query({
    name: 'detector_save_baselines',
    text: SAVE_BASELINES,
    values: [
      entries.map(({ dst }) => dst),
      entries.map(({ vector }) => vector),
      entries.map(({ hour }) => hour),
      entries.map(({ pps }) => pps),
      entries.map(({ bps }) => bps),
      entries.map(({ weight }) => weight),
    ],
  });
}
