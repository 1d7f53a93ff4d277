import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { DetectedAttack, Share, VectorProfile } from '@levee/contract/detector.ts';
import { transact } from '../commands/executor.ts';
import { recordDetectedAttack } from '../commands/record-detected-attack.ts';
import { detectedAttack, sampleOf } from '../commands/testing/detected.ts';
import { eventRenderers } from './event-objects.ts';
import { type ApiFixture, type Holder, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;
const began = Date.parse('2026-01-31T12:00:00Z');

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24', '198.51.100.0/24', '192.0.2.0/24']);
  await api.database.pool.query('update subnet set created_at = $1', [new Date(began - 86_400_000)]);
});
after(() => api.stop());

/** `at`: of the grants that are given from now on, those before stay. */
async function holder(subnet: string, at = began - 3_600_000): Promise<Holder> {
  const made = await api.user(provider, [subnet]);
  await api.database.pool.query('update subnet set created_at = $2 where account_uuid = $1', [made.uuid, new Date(at)]);
  return made;
}

async function tell(detected: DetectedAttack): Promise<string> {
  const outcome = await transact(api.database.pool, (executor) =>
    recordDetectedAttack(executor, detected, new Date(began + 3_600_000)),
  );
  assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
  return outcome.value.uuid;
}

const list = async (who: Holder, query = '') =>
  (await api.call('listAttacks', {}, { key: who.key, query })).body as Record<string, unknown>[];
const read = async (who: Holder, uuid: unknown) =>
  (await api.call('readAttack', { uuid: String(uuid) }, { key: who.key })).body[0];

const second = (at: number, pps: number) => {
  const rate = { pps, bps: pps * 11_200 };
  return { at_ms: at, seconds: 1, ...rate, vectors: { 'udp-amplification': rate } } as const;
};

function profile(pps: number, destinations: Share<string>[], peak = pps): VectorProfile {
  const [known] = detectedAttack('203.0.113.1', began).profile;
  assert.ok(known);
  const rates = { pps, bps: pps * 11_200, peak_pps: peak, peak_bps: peak * 11_200 };
  return { ...known, ...rates, destinations };
}

test('each user whose addresses are attacked in a subnet sees its own share, and nothing of the others’', async () => {
  const first = await holder('203.0.113.0/28');
  const second_ = await holder('203.0.113.16/28');
  const spared = await holder('203.0.113.32/28');
  const dst = '203.0.113.0/24';
  const destinations = [
    { value: '203.0.113.7', share: 0.5 },
    { value: '203.0.113.17', share: 0.2 },
    { value: '203.0.113.18', share: 0.05 },
    { value: '203.0.113.200', share: 0.25 },
  ];
  const whole = detectedAttack(dst, began, {
    measured: { at_ms: began + 1_000, pps: 40_000, bps: 448_000_000 },
    packets: 40_000,
    bytes: 56_000_000,
    sampled: 2_500,
    profile: [profile(40_000, destinations)],
    timeline: [second(began, 40_000)],
    packet_samples: [
      sampleOf('203.0.113.7', began + 10, 9),
      sampleOf('203.0.113.17', began + 20, 10),
      sampleOf('203.0.113.200', began + 30, 11),
    ],
  });
  const uuid = await tell(whole);
  const again = await tell(whole);
  assert.equal(again, uuid);

  const [mine, ...others] = await list(first);
  assert.deepEqual(others, []);
  assert.ok(mine);
  assert.deepEqual(
    [mine.dst, mine.state, mine.part_of, mine.owner_uuid, mine.vectors, mine.peak_pps, mine.peak_bps, mine.mitigation],
    [dst, 'ongoing', uuid, first.uuid, ['udp-amplification'], 20_000, 224_000_000, 'observe'],
  );
  assert.deepEqual([mine.started_at, mine.timings], [new Date(began).toISOString(), undefined]);
  const attack = await read(first, mine.uuid);
  assert.deepEqual([attack.packets, attack.bytes, attack.sampled], [20_000, 28_000_000, 1_250]);
  assert.deepEqual(attack.profile[0].destinations, [{ destination: '203.0.113.7', share: 1 }]);
  assert.deepEqual(attack.top_sources, [{ source: '198.51.100.9', share: 1 }]);
  assert.deepEqual([attack.timeline[0].pps, attack.timeline[0].vectors['udp-amplification'].pps], [20_000, 20_000]);
  assert.deepEqual(
    attack.packet_samples.map(({ dst }: { dst: string }) => dst),
    ['203.0.113.7'],
  );
  for (const name of ['threshold', 'external_id']) assert.equal(attack[name], undefined, name);
  assert.deepEqual([attack.entries, attack.measures.flowrules, attack.measures.firewall_rules], [[], [], []]);

  const [theirs] = await list(second_);
  const other = await api.call('readAttack', { uuid: String(theirs?.uuid) }, { key: second_.key });
  assert.equal(other.body[0].peak_pps, 10_000);
  for (const foreign of ['203.0.113.7', '203.0.113.200', '198.51.100.9', '198.51.100.11', first.uuid]) {
    assert.ok(!other.text.includes(`"${foreign}"`), `${foreign} is another's`);
  }
  const pcap = await api.raw('GET', `/v1/attacks/${mine.uuid}/pcap`, { key: first.key });
  assert.equal(pcap.status, 200);
  assert.equal(Number(pcap.headers.get('content-length')), 24 + 16 + 128, 'one packet');

  assert.deepEqual(await list(spared), [], 'nothing goes to this one');
  for (const foreign of [uuid, theirs?.uuid]) {
    assert.equal((await api.call('readAttack', { uuid: String(foreign) }, { key: first.key })).status, 404);
  }
  const seen = (await api.call('listProviderAttacks', {}, { key: provider.key })).body;
  assert.deepEqual(
    seen.map((each: Record<string, unknown>) => each.part_of),
    [undefined, uuid, uuid],
  );
  assert.equal((await api.call('listAllAttacks', {}, { key: api.operatorKey })).body.length, 3);
  const rendered = await eventRenderers({
    pool: api.database.pool,
    states: { stateOf: () => assert.fail('an attack has no applied state') } as never,
    hasSpeaker: false,
  }).attack?.([String(mine.uuid)]);
  assert.deepEqual([rendered?.[0]?.ownerUuid, rendered?.[0]?.state], [first.uuid, 'ongoing']);

  await tell({
    ...whole,
    phase: 'ended',
    ended_ms: began + 2_000,
    measured: { at_ms: began + 2_500, pps: 0, bps: 0 },
    timeline: [],
    packet_samples: [],
  });
  // Events follow these entries: one of the start, one of the end, and the repeated report made none.
  const { rows } = await api.database.pool.query(
    `select count(*)::int as entries from change where kind = 'attack' and object_uuid = $1`,
    [mine.uuid],
  );
  assert.equal(rows[0].entries, 2);
  for (const who of [first, second_]) {
    const [part] = await list(who, '?state=ended');
    assert.deepEqual([part?.end_reason, part?.ended_at], ['reported', new Date(began + 2_000).toISOString()]);
  }
});

test('a share ends with the last address of its holder in the subnet, and whoever gets it begins with nothing', async () => {
  const dst = '198.51.100.0/24';
  const address = '198.51.100.9';
  const former = await holder('198.51.100.0/28');
  const id = detectedAttack(dst, began).id;
  const report = (at: number, host: number) =>
    detectedAttack(dst, began, {
      id,
      phase: at === 1 ? 'started' : 'changed',
      measured: { at_ms: began + at * 1_000, pps: 20_000, bps: 224_000_000 },
      packets: at * 20_000,
      bytes: at * 28_000_000,
      profile: [profile(20_000, [{ value: address, share: 1 }], 90_000)],
      timeline: [second(began + (at - 1) * 1_000, 20_000)],
      packet_samples: [sampleOf(address, began + at * 1_000 - 10, host)],
    });
  await tell(report(1, 21));
  await api.call('deleteUser', { uuid: former.uuid }, { key: provider.key });
  const present = await holder('198.51.100.0/28', began + 1_500);
  await tell(report(2, 22));
  const [soon] = await list(present);
  const early = await read(present, soon?.uuid);
  assert.deepEqual(
    early.packet_samples.map(({ src }: { src: string }) => src),
    ['198.51.100.22'],
  );
  await tell(report(40, 23));
  const mine = await list(present);
  assert.equal(mine.length, 1);
  const attack = await read(present, mine[0]?.uuid);
  assert.ok(Date.parse(attack.started_at) >= began + 1_500);
  assert.ok(attack.peak_pps <= 20_000);
  assert.ok(!JSON.stringify(attack).includes('198.51.100.21'));
  assert.ok(attack.timeline.every(({ at }: { at: string }) => Date.parse(at) >= began + 1_500));
});

test('of an attack that goes on when its address changes hands, neither holder has anything of the other’s', async () => {
  const dst = '192.0.2.9';
  const former = await holder(dst);
  const id = detectedAttack(dst, began).id;
  const report = (at: number, host: number, pps: number) =>
    detectedAttack(dst, began, {
      id,
      phase: at === 1 ? 'started' : 'changed',
      measured: { at_ms: began + at * 1_000, pps, bps: pps * 11_200 },
      packets: at * 10_000,
      bytes: at * 14_000_000,
      profile: [{ ...profile(pps, [], 70_000), sources: [{ value: '198.51.100.77', share: 1 }] }],
      timeline: [second(began + (at - 2) * 1_000, 70_000), second(began + (at - 1) * 1_000, pps)],
      packet_samples: [
        sampleOf(dst, began + (at - 1) * 1_000 - 10, host),
        sampleOf(dst, began + at * 1_000 - 10, host + 1),
      ],
    });
  await tell(report(1, 31, 70_000));
  await api.call('deleteUserIps', {}, { key: provider.key, body: { user_uuid: former.uuid, ips: [dst] } });
  const present = await holder(dst, began + 4_000);
  await tell(report(5, 41, 30_000));
  const [mine, ...more] = await list(present);
  assert.deepEqual(more, []);
  const attack = await read(present, mine?.uuid);
  assert.deepEqual(
    attack.packet_samples.map(({ src }: { src: string }) => src),
    ['198.51.100.42'],
  );
  assert.deepEqual(
    attack.timeline.map(({ at }: { at: string }) => at),
    [new Date(began + 4_000).toISOString()],
  );
  assert.deepEqual(
    [attack.packets, attack.peak_pps, attack.profile[0].peak_pps, attack.top_sources],
    [40_000, 30_000, 30_000, [{ source: '198.51.100.42', share: 1 }]],
  );
  const [old] = await list(former);
  const past = await read(former, old?.uuid);
  assert.deepEqual([past.end_reason, past.packets, past.timeline.length], ['holder_changed', 10_000, 2]);
  assert.ok(!JSON.stringify(past).includes('198.51.100.42'));
  await tell(report(50, 51, 30_000));
  const later = await read(present, mine?.uuid);
  assert.deepEqual(later.top_sources, [{ source: '198.51.100.77', share: 1 }], 'by then the profile is its own');
  assert.deepEqual([later.packets, later.profile[0].peak_pps], [490_000, 30_000]);
});
