import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { DetectedAttack, TimelineEntry } from '@levee/contract/detector.ts';
import type { Database } from '../store/database.ts';
import { seedProvider } from '../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../store/testing/test-postgres.ts';
import {
  FIRST_PACKETS_KEPT,
  FIRST_SECONDS_KEPT,
  NEWEST_MINUTES_KEPT,
  NEWEST_SECONDS_KEPT,
  OLDER_MINUTES_KEPT,
  OTHER_PACKETS_KEPT,
} from './attack-evidence.ts';
import { transact } from './executor.ts';
import { recordDetectedAttack } from './record-detected-attack.ts';
import { detectedAttack, sampleOf } from './testing/detected.ts';

let postgres: TestPostgres;
let database: Database;
const began = Date.parse('2026-01-31T12:00:00Z');
const dst = '198.18.0.1';

before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  await seedProvider(database.pool);
});
after(() => postgres?.stop());

async function tell(detected: DetectedAttack): Promise<string> {
  const outcome = await transact(database.pool, (executor) =>
    recordDetectedAttack(executor, detected, new Date(began + 86_400_000 * 40)),
  );
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return outcome.value.uuid;
}

const second = (index: number, pps = 1_000): TimelineEntry => ({
  at_ms: began + index * 1_000,
  seconds: 1,
  pps,
  bps: pps * 8_000,
  vectors: { 'udp-amplification': { pps, bps: pps * 8_000 } },
});
const minute = (index: number, pps = 1_000): TimelineEntry => ({ ...second(index * 60, pps), seconds: 60 });

async function kept(uuid: string, seconds: 1 | 60): Promise<number[]> {
  const { rows } = await database.pool.query(
    `select ((extract(epoch from at) - $3) / $2)::int as place from attack_timeline
      where attack_uuid = $1 and seconds = $2 order by at`,
    [uuid, seconds, began / 1000],
  );
  return rows.map(({ place }) => place);
}

async function everything(uuid: string): Promise<unknown> {
  const { rows } = await database.pool.query(
    `select (select json_agg(t order by seconds, at) from attack_timeline t where attack_uuid = $1) as timeline,
      (select json_agg(p order by mark) from attack_packet p where attack_uuid = $1) as packets,
      (select row_to_json(e) from attack_evidence e where attack_uuid = $1) as latest,
      (select row_to_json(t) from attack_timing t where attack_uuid = $1) as timing,
      (select count(*) from change where object_uuid = $1) as changes`,
    [uuid],
  );
  return rows[0];
}

test('of seconds the first, the newest and the highest stay, whatever the length of the attack', async () => {
  const detected = detectedAttack(dst, began);
  const peak = 700;
  let uuid = '';
  for (let from = 0; from < 2_000; from += 250) {
    const timeline = Array.from({ length: 250 }, (_, index) =>
      second(from + index, from + index === peak ? 9_000 : 1_000),
    );
    uuid = await tell({ ...detected, timeline });
  }
  const expected = [
    ...Array.from({ length: FIRST_SECONDS_KEPT }, (_, index) => index),
    peak,
    ...Array.from({ length: NEWEST_SECONDS_KEPT }, (_, index) => 2_000 - NEWEST_SECONDS_KEPT + index),
  ];
  assert.deepEqual(await kept(uuid, 1), expected);
});

test('of minutes the past grows coarser and keeps its ends and its peak, over a month', async () => {
  const detected = detectedAttack(dst, began);
  const total = 30 * 24 * 60;
  const peak = 4_321;
  let uuid = '';
  for (let from = 0; from < total; from += 4_800) {
    const timeline = Array.from({ length: 4_800 }, (_, index) =>
      minute(from + index, from + index === peak ? 9_000 : 1_000),
    );
    uuid = await tell({ ...detected, timeline });
  }
  const places = await kept(uuid, 60);
  assert.ok(places.length <= NEWEST_MINUTES_KEPT + OLDER_MINUTES_KEPT + 2, `${places.length} are kept`);
  assert.deepEqual([places[0], places.at(-1)], [0, total - 1]);
  assert.ok(places.includes(peak));
  const widest = Math.max(...places.slice(1).map((place, index) => place - (places[index] ?? 0)));
  assert.ok(widest <= 64, `${widest} minutes between two`);
});

test('of packets the first stay and each moment of the rest has its part; there are never more than a thousand', async () => {
  const detected = detectedAttack(dst, began);
  let uuid = '';
  for (let report = 0; report < 40; report++) {
    const packet_samples = Array.from({ length: 100 }, (_, index) =>
      sampleOf(dst, began + report * 1_000 + index, index),
    );
    uuid = await tell({ ...detected, packet_samples });
  }
  const { rows } = await database.pool.query(
    `select (extract(epoch from at) - $2)::int as second, count(*)::int as packets from attack_packet
      where attack_uuid = $1 group by 1 order by 1`,
    [uuid, began / 1000],
  );
  const counts: number[] = rows.map(({ packets }) => packets);
  assert.equal(
    counts.reduce((sum, each) => sum + each, 0),
    FIRST_PACKETS_KEPT + OTHER_PACKETS_KEPT,
  );
  assert.equal(rows.length, 40, 'no second is without');
  assert.equal(counts[0], 100);
  // 900 of 3 900 are 23 of 100; 4 standard deviations are 17.
  for (const packets of counts.slice(1)) assert.ok(packets > 5 && packets < 41, `${counts}`);
});

test('a report that is told again changes nothing, and an older one does not stand for a newer', async () => {
  const first = detectedAttack(dst, began);
  const packets = Array.from({ length: 100 }, (_, index) => sampleOf(dst, began + index, index % 50));
  // Two that are equal to the octet were two packets.
  packets.push(sampleOf(dst, began, 1), sampleOf(dst, began, 1));
  const report = { ...first, timeline: [second(0), second(1), minute(0)], packet_samples: packets };
  const uuid = await tell(report);
  const later: DetectedAttack = {
    ...first,
    phase: 'changed',
    measured: { ...first.measured, at_ms: began + 2_000 },
    packets: 99_000,
    timeline: [second(1, 2_000), second(2)],
  };
  await tell(later);
  const before = await everything(uuid);
  await tell(later);
  assert.deepEqual(await everything(uuid), before);
  await tell({ ...report, timeline: [second(0), minute(0)] });
  assert.deepEqual(await everything(uuid), before);
  const { rows } = await database.pool.query(
    `select e.packets::int, e.kept, (select pps::int from attack_timeline t where t.attack_uuid = $1 and seconds = 1
        and at = to_timestamp($2)) as corrected from attack_evidence e where attack_uuid = $1`,
    [uuid, began / 1000 + 1],
  );
  assert.deepEqual(rows[0], { packets: 99_000, kept: 106, corrected: 2_000 });
});

test('totals never fall when another detector takes the attack over and counts anew', async () => {
  const first = detectedAttack(dst, began);
  const uuid = await tell(first);
  const later = { at_ms: began + 9_000, pps: 100, bps: 800 };
  await tell({ ...first, phase: 'changed', measured: later, packets: 5, bytes: 500, sampled: 1 });
  const { rows } = await database.pool.query(
    `select packets::int, bytes::int, sampled::int, measured_at = to_timestamp($2) as is_later from attack_evidence
      where attack_uuid = $1`,
    [uuid, later.at_ms / 1000],
  );
  assert.deepEqual(rows[0], { packets: 12_000, bytes: 16_800_000, sampled: 750, is_later: true });
});

test('packets and seconds that are told of an attack make no entry in the change log', async () => {
  const detected = detectedAttack(dst, began);
  const uuid = await tell(detected);
  const changes = async () => (await database.pool.query('select from change where object_uuid = $1', [uuid])).rowCount;
  assert.equal(await changes(), 1);
  for (const index of [1, 2, 3]) {
    await tell({ ...detected, phase: 'changed', packets: 12_000 * index, timeline: [second(index)] });
  }
  assert.equal(await changes(), 1);
});
