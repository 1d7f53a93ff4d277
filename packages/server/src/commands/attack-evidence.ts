/**
 * Keeps what a detector tells of an attack besides the attack itself: how it went, what its packets look like, some of them.
 * Owns how much of that stays: whatever arrives, in whatever order and however often, the same is kept, and never more than
 * the bounds below. Makes no entry in the change log: no state is derived from it.
 */
import { createHash } from 'node:crypto';
import type { DetectedAttack, PacketSample, TimelineEntry, VectorProfile } from '@levee/contract/detector.ts';
import { type OwnEvidence, withPeaksOf } from '@levee/core/attack/own-part.ts';
import type { Executor } from './executor.ts';

/** Of seconds the first ones and the newest; the minutes between them stay (decision 0150). */
export const FIRST_SECONDS_KEPT = 300;
export const NEWEST_SECONDS_KEPT = 600;
/** Of minutes the newest are whole; of the older ones every second, fourth, … stays, by the time that they span. */
export const NEWEST_MINUTES_KEPT = 240;
export const OLDER_MINUTES_KEPT = 1_200;
/** The first packets, and of the others a sample in which each moment has its part. */
export const FIRST_PACKETS_KEPT = 100;
export const OTHER_PACKETS_KEPT = 900;

/** What a report counts beyond the reports before it. */
export interface CountedTotals {
  readonly packets: number;
  readonly bytes: number;
  readonly sampled: number;
}

/** Of all that one detected attack is recorded as: it is one for the detector, whoever holds the destination. */
const countedStatement = {
  name: 'attack_evidence_counted',
  text: `select coalesce(sum(e.packets), 0)::float8 as packets, coalesce(sum(e.bytes), 0)::float8 as bytes,
      coalesce(sum(e.sampled), 0)::float8 as sampled
    from attack a join attack_evidence e on e.attack_uuid = a.uuid where a.source = $1 and a.external_id = $2`,
};

const keptStatement = {
  name: 'attack_evidence_kept',
  text: 'select profile from attack_evidence where attack_uuid = $1',
};

/** Totals only rise: a detector that took the attack over may not know what was counted before it. */
const latestStatement = {
  name: 'attack_evidence_latest',
  text: `insert into attack_evidence as e
      (attack_uuid, measured_at, packets, bytes, sampled, profile, entries, narrowed)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (attack_uuid) do update set measured_at = excluded.measured_at, packets = e.packets + excluded.packets,
      bytes = e.bytes + excluded.bytes, sampled = e.sampled + excluded.sampled, profile = excluded.profile,
      entries = excluded.entries, narrowed = excluded.narrowed
    where excluded.measured_at > e.measured_at`,
};

/** What goes on from another holder was not detected for this one: no step of it took time. */
const timingStatement = {
  name: 'attack_evidence_timing',
  text: `insert into attack_timing (attack_uuid, detected_at, detect_ms)
    select uuid, $2, $3 from attack where uuid = $1 and continues is null on conflict do nothing`,
};

const timelineStatement = {
  name: 'attack_evidence_timeline',
  text: `insert into attack_timeline as t (attack_uuid, seconds, at, pps, bps, vectors)
    select distinct on (seconds, at) $1::uuid, seconds, at, pps, bps, vectors::json
    from unnest($2::int2[], $3::timestamptz[], $4::int8[], $5::int8[], $6::text[])
      with ordinality n (seconds, at, pps, bps, vectors, place)
    order by seconds, at, place desc
    on conflict (attack_uuid, seconds, at) do update set pps = excluded.pps, bps = excluded.bps, vectors = excluded.vectors`,
};

/**
 * By places among the seconds: which ones stay does not depend on when the others went. The highest of each kind stay. Rows
 * are named by where they lie, which holds for the turn that a report has: joined by their keys, without statistics of a table
 * that is just being filled, 5 000 of them took half a minute.
 */
const thinSecondsStatement = {
  name: 'attack_evidence_thin_seconds',
  text: `with ranked as (
      select ctid as row, row_number() over (order by at) as place, row_number() over (order by at desc) as from_end,
        row_number() over (order by pps desc, at) as by_pps, row_number() over (order by bps desc, at) as by_bps
      from attack_timeline where attack_uuid = $1 and seconds = 1
    )
    delete from attack_timeline where ctid = any(array(select row from ranked
      where place > ${FIRST_SECONDS_KEPT} and from_end > ${NEWEST_SECONDS_KEPT} and by_pps > 1 and by_bps > 1))`,
};

/** The step is the power of two with which the older ones fit; the minute's own number decides, not what went before. */
const thinMinutesStatement = {
  name: 'attack_evidence_thin_minutes',
  text: `with ranked as (
      select ctid as row, (extract(epoch from at) / 60)::int8 as minute, row_number() over (order by at) as place,
        row_number() over (order by at desc) as from_end, row_number() over (order by pps desc, at) as by_pps,
        row_number() over (order by bps desc, at) as by_bps,
        (2 ^ greatest(0, ceil(log(2, greatest(1,
          extract(epoch from max(at) over () - min(at) over ()) / 60 / ${OLDER_MINUTES_KEPT})))))::int8 as step
      from attack_timeline where attack_uuid = $1 and seconds = 60
    )
    delete from attack_timeline where ctid = any(array(select row from ranked
      where minute % step <> 0 and place > 1 and from_end > ${NEWEST_MINUTES_KEPT} and by_pps > 1 and by_bps > 1))`,
};

const packetStatement = {
  name: 'attack_evidence_packets',
  text: `insert into attack_packet (attack_uuid, mark, at, scale, exporter, interface, length, header)
    select $1::uuid, mark, at, scale, exporter, interface, length, decode(header, 'base64')
    from unnest($2::int8[], $3::timestamptz[], $4::float8[], $5::text[], $6::int8[], $7::int4[], $8::text[])
      n (mark, at, scale, exporter, interface, length, header)
    on conflict do nothing`,
};

/** Those with the lowest marks: a mark is as good as random, so each packet is as likely to stay as any other. */
const thinPacketsStatement = {
  name: 'attack_evidence_thin_packets',
  text: `with ranked as (
      select ctid as row, mark, row_number() over (order by at, mark) as place from attack_packet where attack_uuid = $1
    ), others as (
      select row, row_number() over (order by mark) as place from ranked where place > ${FIRST_PACKETS_KEPT}
    )
    delete from attack_packet where ctid = any(array(select row from others where place > ${OTHER_PACKETS_KEPT}))`,
};

const countStatement = {
  name: 'attack_evidence_count',
  text: `update attack_evidence e set kept = n.kept
    from (select (select count(*) from attack_timeline where attack_uuid = $1)
      + (select count(*) from attack_packet where attack_uuid = $1) as kept) n
    where e.attack_uuid = $1 and e.kept <> n.kept`,
};

/** Before its evidence is saved. Nothing, where the report is told again or counts anew. */
export async function countBeyond(
  executor: Executor,
  source: string,
  detected: DetectedAttack,
): Promise<CountedTotals> {
  const [counted] = await executor.rows<CountedTotals & Record<string, unknown>>(countedStatement, [
    source,
    detected.id,
  ]);
  const beyond = (of: keyof CountedTotals) => Math.max(0, detected[of] - (counted?.[of] ?? 0));
  return { packets: beyond('packets'), bytes: beyond('bytes'), sampled: beyond('sampled') };
}

/** In the transaction of the report. `counted`: what the report adds to the totals. */
export async function saveEvidence(
  executor: Executor,
  attackUuid: string,
  evidence: OwnEvidence,
  counted: CountedTotals,
): Promise<void> {
  if (!executor.inTransaction) throw new Error('evidence is saved outside a transaction');
  const { measured, entries, isNarrowed } = evidence;
  const [kept] = await executor.rows<{ profile: VectorProfile[] }>(keptStatement, [attackUuid]);
  const profile = withPeaksOf(kept?.profile ?? [], evidence.profile);
  const totals = [counted.packets, counted.bytes, counted.sampled].map(Math.round);
  const told = [JSON.stringify(profile), JSON.stringify(entries), isNarrowed];
  await executor.rows(latestStatement, [attackUuid, new Date(measured.at_ms), ...totals, ...told]);
  await saveTimeline(executor, attackUuid, evidence.timeline);
  await savePackets(executor, attackUuid, evidence.packet_samples);
  if (evidence.timeline.length > 0 || evidence.packet_samples.length > 0) {
    await executor.rows(countStatement, [attackUuid]);
  }
}

/** How long it took to detect: told once. */
export async function noteDetection(
  executor: Executor,
  attackUuid: string,
  { started_ms, detected_ms }: DetectedAttack,
): Promise<void> {
  const detectMilliseconds = Math.max(0, detected_ms - started_ms);
  await executor.rows(timingStatement, [attackUuid, new Date(detected_ms), detectMilliseconds]);
}

const copyStatement = {
  name: 'attack_evidence_copy',
  text: `insert into attack_evidence (attack_uuid, measured_at, packets, bytes, sampled, profile, entries, narrowed)
    select $2, measured_at, 0, 0, 0, coalesce((
        select json_agg(p::jsonb || jsonb_build_object('peak_pps', p->'pps', 'peak_bps', p->'bps')) from json_array_elements(profile) p
      ), '[]'), '[]', true
    from attack_evidence where attack_uuid = $1
    on conflict do nothing`,
};

/**
 * What was told of an attack last holds for the part of it that begins with another holder: to decide by. The new holder reads
 * nothing of it but the rates.
 */
export async function copyEvidence(executor: Executor, attackUuid: string, partUuid: string): Promise<void> {
  await executor.rows(copyStatement, [attackUuid, partUuid]);
}

async function saveTimeline(executor: Executor, uuid: string, timeline: readonly TimelineEntry[]): Promise<void> {
  if (timeline.length === 0) return;
  await executor.rows(timelineStatement, [
    uuid,
    timeline.map(({ seconds }) => seconds),
    timeline.map(({ at_ms }) => new Date(at_ms)),
    timeline.map(({ pps }) => Math.round(pps)),
    timeline.map(({ bps }) => Math.round(bps)),
    timeline.map(({ vectors }) => JSON.stringify(vectors)),
  ]);
  await executor.rows(thinSecondsStatement, [uuid]);
  if (timeline.some(({ seconds }) => seconds === 60)) await executor.rows(thinMinutesStatement, [uuid]);
}

async function savePackets(executor: Executor, uuid: string, samples: readonly PacketSample[]): Promise<void> {
  if (samples.length === 0) return;
  const marks = marksOf(samples);
  await executor.rows(packetStatement, [
    uuid,
    marks,
    samples.map(({ at_ms }) => new Date(at_ms)),
    samples.map(({ scale }) => scale),
    samples.map(({ exporter }) => exporter),
    samples.map(({ input_interface }) => input_interface ?? null),
    samples.map(({ length }) => length),
    samples.map(({ header }) => header),
  ]);
  await executor.rows(thinPacketsStatement, [uuid]);
}

/** Of equal packets of one report the second is another than the first, and the same as the second when it comes again. */
function marksOf(samples: readonly PacketSample[]): string[] {
  const seen = new Map<string, number>();
  return samples.map((sample) => {
    const { at_ms, scale, exporter, input_interface, length, header } = sample;
    const text = JSON.stringify([at_ms, scale, exporter, input_interface ?? null, length, header]);
    const before = seen.get(text) ?? 0;
    seen.set(text, before + 1);
    return createHash('sha256').update(`${before} ${text}`).digest().readBigInt64BE(0).toString();
  });
}

const decidedStatement = {
  name: 'attack_evidence_decided',
  text: `update attack_timing t
    set decided_at = clock_timestamp(),
      decide_ms = greatest(0, round(extract(epoch from clock_timestamp() - t.detected_at) * 1000, 1))
    where t.attack_uuid = $1 and t.decided_at is null and (
      exists (select from flowrule f where f.attack_uuid = $1)
      or exists (select from firewall_rule r where r.attack_uuid = $1))`,
};

/**
 * The last statement of a report's transaction: when its first measures are there, how long it took to decide on them. What
 * is left of the transaction is its commit.
 */
export async function noteDecision(executor: Executor, attackUuid: string): Promise<void> {
  await executor.rows(decidedStatement, [attackUuid]);
}
