import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGGREGATE_ONLY } from '../bus/port.ts';
import { MOST_ATTACKS } from './attacks.ts';
import { type Flow, MONDAY, policy, Rig, slotReport } from './testing/rig.ts';

const victim = '203.0.113.7';
const syn = (pps: number, dst = victim): Flow => ({ dst, vector: 'tcp-syn', pps });
const udp = (pps: number, dst = victim): Flow => ({ dst, vector: 'udp-other', pps });

test('a carpet over a /22 is four attacks, each on its /24, light or heavy', () => {
  for (const pps of [2_000, 30_000]) {
    const rig = new Rig({ prefixes: ['198.18.0.0/20'], sampling: 256 });
    rig.run(5);
    const carpet = Array.from({ length: 1024 }, (_, host) => udp(pps, `198.18.${4 + (host >> 8)}.${host & 255}`));
    rig.run(15, carpet);
    rig.run(60);
    assert.deepEqual(
      rig.found().sort(),
      [4, 5, 6, 7].map((third) => `198.18.${third}.0/24 udp-other`),
      `${pps}`,
    );
    assert.equal(rig.phases('ended').length, 4);
  }
});

test('a carpet over a /64 is one attack on it', () => {
  const rig = new Rig({ prefixes: ['2001:db8::/48'], sampling: 64 });
  let host = 0;
  for (let slot = 0; slot < 40; slot++) {
    rig.slot(Array.from({ length: 1500 }, () => syn(64 * 4, `2001:db8:0:5::${(++host).toString(16)}`)));
  }
  assert.deepEqual(rig.found(), ['2001:db8:0:5::/64 tcp-syn']);
});

test('where less than a /24 is protected, it is that which is attacked, never what lies beside it', () => {
  const rig = new Rig({ prefixes: ['203.0.113.16/28', '203.0.113.64/26'] });
  const carpet = Array.from({ length: 16 }, (_, host) => syn(3_500, `203.0.113.${16 + host}`));
  rig.run(15, carpet);
  assert.deepEqual(rig.found(), ['203.0.113.16/28 tcp-syn']);
});

test('what a collector tells of a subnet alone counts for it, and for nothing where less of it is protected', () => {
  const tell = (rig: Rig) => {
    for (let slot = 0; slot < 8; slot++) {
      const row = { dst: '203.0.113.0', vector: 'tcp-syn', packets: 30_000, bytes: 1_800_000, samples: 3_000 } as const;
      const report = slotReport('a', slot, rig.slotMs, [row]);
      report.families[0] = 4 + AGGREGATE_ONLY;
      rig.passTo(rig.slotMs + 270);
      rig.hear(report);
      rig.advance(250);
    }
  };
  const whole = new Rig();
  tell(whole);
  assert.deepEqual(whole.found(), ['203.0.113.0/24 tcp-syn']);
  const part = new Rig({ prefixes: ['203.0.113.16/28'] });
  tell(part);
  assert.deepEqual(part.found(), []);
  assert.equal(part.detection.status().trackedDestinations, 0);
});

test('more attacks than are kept at a time are counted, and none of them is lost for it', () => {
  const rig = new Rig({ prefixes: ['10.0.0.0/11'], policies: [policy({}, { hold_s: 1 })] });
  const flood = Array.from({ length: MOST_ATTACKS + 50 }, (_, net) => syn(50_000, `10.${net >> 8}.${net & 255}.1`));
  rig.run(0.5, flood);
  assert.equal(rig.detection.status().attacks, MOST_ATTACKS);
  rig.run(3, flood.slice(0, 1));
  assert.equal(rig.phases('ended').length, MOST_ATTACKS - 1);
  rig.skip(60_000);
  assert.equal(rig.warnings.length, 1);
});

test('prefixes inside another do not divide what is attacked together', () => {
  const rig = new Rig({ prefixes: ['203.0.113.0/24', '203.0.113.7', '203.0.113.16/28'] });
  rig.run(
    5,
    Array.from({ length: 250 }, (_, host) => udp(2_000, `203.0.113.${host + 1}`)),
  );
  assert.deepEqual(rig.found(), ['203.0.113.0/24 udp-other']);
});

test('attacks on single addresses are none on their subnet, be they so large', () => {
  const rig = new Rig({ sampling: 64 });
  rig.run(10, [syn(2_000_000, '203.0.113.1'), syn(900_000, '203.0.113.2'), udp(3_000_000, '203.0.113.3')]);
  rig.run(60);
  assert.deepEqual(rig.found().sort(), ['203.0.113.1 tcp-syn', '203.0.113.2 tcp-syn', '203.0.113.3 udp-other']);
});

test('busy neighbours do not make an attack on one address one on the subnet', () => {
  const rig = new Rig({ sampling: 64 });
  const busy = Array.from({ length: 150 }, (_, host) => udp(1_000, `203.0.113.${host + 50}`));
  rig.run(10, busy);
  rig.run(10, [...busy, udp(100_000)]);
  rig.run(60, busy);
  assert.deepEqual(rig.found(), [`${victim} udp-other`]);
});

test('a flood that goes from address to address is eight attacks on addresses and one on the subnet', () => {
  const rig = new Rig({ sampling: 16 });
  for (let host = 1; host <= 60; host++) rig.run(2, [syn(100_000, `203.0.113.${host}`)]);
  rig.run(600);
  const found = rig.found();
  assert.equal(found.length, 9, found.join());
  assert.equal(found.at(-1), '203.0.113.0/24 tcp-syn');
  assert.equal(rig.phases('ended').length, 9);
});

test('neighbours that are attacked by other vectors, or whose attacks are over, are attacked each on its own', () => {
  const rig = new Rig({ sampling: 16 });
  const vectors = ['tcp-syn', 'udp-other', 'icmp', 'gre', 'tcp-rst', 'ip-fragment', 'esp'] as const;
  const flows = vectors.map((vector, host): Flow => ({ dst: `203.0.113.${host + 1}`, vector, pps: 200_000 }));
  rig.run(10, flows);
  assert.deepEqual(rig.found().sort(), flows.map(({ dst, vector }) => `${dst} ${vector}`).sort());
  const over = new Rig({ sampling: 16 });
  over.run(
    5,
    [1, 2, 3, 4].map((host) => syn(60_000, `203.0.113.${host}`)),
  );
  over.run(2);
  over.run(5, [syn(60_000, '203.0.113.9')]);
  assert.equal(over.found().at(-1), '203.0.113.9 tcp-syn');
});

test('five neighbours that are attacked by one vector at a time are one attack on the subnet from the fifth on', () => {
  const rig = new Rig({ sampling: 16 });
  const hosts = [1, 2, 3, 4, 5, 6, 7].map((host) => syn(60_000, `203.0.113.${host}`));
  for (const [index] of hosts.entries()) rig.run(4, hosts.slice(0, index + 1));
  rig.run(60, hosts);
  rig.run(120);
  assert.deepEqual(
    rig.phases('started').map(({ dst }) => dst),
    [...hosts.slice(0, 4).map(({ dst }) => dst), '203.0.113.0/24'],
  );
  assert.equal(rig.phases('ended').length, 5);
});

test('an address of an attacked subnet that has too much of another vector is an attack of its own', () => {
  const rig = new Rig({ sampling: 16 });
  const carpet = Array.from({ length: 200 }, (_, host) => udp(2_000, `203.0.113.${host + 1}`));
  rig.run(10, carpet);
  rig.run(10, [...carpet, syn(60_000)]);
  assert.deepEqual(rig.found(), ['203.0.113.0/24 udp-other', `${victim} tcp-syn`]);
  const last = rig.attacks.findLast(({ dst }) => dst === '203.0.113.0/24');
  assert.equal(last?.profile[0]?.destinations.length, 64);
});

test('an attack ends when it has been below half of the threshold for the hold, at its last moment above', () => {
  const rig = new Rig({ policies: [policy({ 'tcp-syn': { pps: 10_000 } }, { hold_s: 20 })] });
  rig.run(10, [syn(50_000)]);
  const over = rig.slotMs;
  rig.run(10, [syn(4_900)]);
  rig.run(2, [syn(5_500)]);
  const last = rig.slotMs;
  rig.run(19.5, [syn(4_900)]);
  assert.equal(rig.phases('ended').length, 0);
  rig.run(2, [syn(4_900)]);
  const [ended] = rig.phases('ended');
  assert.ok(Math.abs((ended?.ended_ms ?? 0) - last) <= 250);
  assert.ok(over < last);
});

test('an attack that comes back soon is another one, whose hold is twice as long', () => {
  const rig = new Rig({ policies: [policy({ 'tcp-syn': { pps: 10_000 } }, { hold_s: 10 })] });
  const quiet: number[] = [];
  for (let pulse = 0; pulse < 4; pulse++) {
    rig.run(5, [syn(50_000)]);
    const over = rig.slotMs;
    const ends = rig.phases('ended').length;
    while (rig.phases('ended').length === ends) rig.run(0.25);
    quiet.push(Math.round((rig.slotMs - over) / 1000));
    rig.run(5);
  }
  assert.deepEqual(quiet, [10, 20, 40, 80]);
  assert.equal(new Set(rig.attacks.map(({ id }) => id)).size, 4);
  rig.run(3_600);
  rig.run(5, [syn(50_000)]);
  rig.run(11);
  assert.equal(rig.phases('ended').length, 5);
});

test('what stays between half of the threshold and the threshold for long is what is usual by now', () => {
  const rig = new Rig();
  rig.run(10, [syn(50_000)]);
  rig.run(500, [syn(7_000)]);
  assert.equal(rig.phases('ended').length, 0);
  rig.run(120, [syn(7_000)]);
  assert.equal(rig.phases('ended').length, 1);
});

const ongoing = {
  id: '20000000-0000-4000-8000-000000000001',
  dst: victim,
  vectors: ['tcp-syn'],
  started_ms: MONDAY - 60_000,
  detected_ms: MONDAY - 59_700,
  told: {
    packets: 1_000_000,
    bytes: 60_000_000,
    sampled: 9_000,
    threshold: { policy: 'default', vector: 'tcp-syn', metric: 'pps' as const, value: 10_000, observed: 17_000 },
  },
};

test('an attack that goes on when detection begins is taken over under its name, and counts on', () => {
  const rig = new Rig({ ongoing: [ongoing] });
  rig.run(20, [syn(50_000)]);
  rig.run(60);
  assert.equal(rig.phases('started').length, 0);
  assert.deepEqual(new Set(rig.attacks.map(({ id }) => id)), new Set([ongoing.id]));
  const [ended] = rig.phases('ended');
  assert.equal(ended?.started_ms, ongoing.started_ms);
  assert.deepEqual(ended?.threshold, ongoing.told.threshold);
  assert.ok((ended?.packets ?? 0) >= 2_000_000);
});

test('one that nothing confirms is ended after the hold', () => {
  const rig = new Rig({ ongoing: [ongoing] });
  rig.run(29);
  assert.equal(rig.phases('ended').length, 0);
  rig.run(3);
  assert.deepEqual(rig.attacks.map(({ id, phase }) => [id, phase]).at(-1), [ongoing.id, 'ended']);
});

test('there are never two on one destination: a second one that is told of is ended, as is one on what is not protected', () => {
  const rig = new Rig();
  rig.run(5, [syn(50_000)]);
  const other = { ...ongoing, id: '20000000-0000-4000-8000-000000000002', dst: '198.51.100.1' };
  rig.change({ ongoing: [ongoing, other] });
  assert.deepEqual(
    rig.phases('ended').map(({ id }) => id),
    [ongoing.id, other.id],
  );
  rig.change({ ongoing: [ongoing, other] });
  assert.equal(rig.phases('ended').length, 2);
});

test('an attack that has ended here is not taken over from settings that were older', () => {
  const rig = new Rig();
  rig.run(5, [syn(50_000)]);
  rig.run(40);
  const started = rig.phases('started')[0];
  assert.ok(started !== undefined);
  const { id, dst, vectors, started_ms, detected_ms } = started;
  const count = rig.attacks.length;
  rig.change({ ongoing: [{ id, dst, vectors, started_ms, detected_ms }] });
  rig.run(40);
  assert.equal(rig.attacks.length, count);
  // Settings that still have it a minute later: its end has not arrived.
  for (let times = 0; times < 2; times++) rig.change({ ongoing: [{ id, dst, vectors, started_ms, detected_ms }] });
  const again = rig.attacks.slice(count);
  assert.deepEqual(
    again.map((each) => [each.id, each.phase, each.ended_ms]),
    [[id, 'ended', rig.phases('ended')[0]?.ended_ms]],
  );
});

test('what is not of the share is left alone, and taken over when it is', () => {
  let isOurs = false;
  const rig = new Rig({ ongoing: [ongoing], isOurs: () => isOurs });
  rig.run(40);
  assert.equal(rig.attacks.length, 0);
  isOurs = true;
  rig.detection.shareChanged();
  rig.run(10, [syn(50_000)]);
  assert.equal(rig.attacks[0]?.id, ongoing.id);
  const count = rig.attacks.length;
  isOurs = false;
  rig.detection.shareChanged();
  rig.run(60);
  assert.equal(rig.attacks.length, count);
  assert.equal(rig.detection.status().attacks, 0);
});

test('an attack outlives other policies and prefixes, and ends when its address is no longer protected', () => {
  const rig = new Rig();
  rig.run(5, [syn(50_000)]);
  rig.change({ policies: [policy({ 'tcp-syn': { pps: 20_000 } })] });
  rig.change({ prefixes: ['203.0.113.0/24', '198.51.100.0/24'] });
  rig.run(5, [syn(50_000), syn(50_000, '198.51.100.3')]);
  assert.deepEqual(rig.found(), [`${victim} tcp-syn`, '198.51.100.3 tcp-syn']);
  rig.change({ prefixes: ['198.51.100.0/24'] });
  assert.deepEqual(
    rig.phases('ended').map(({ dst }) => dst),
    [victim],
  );
});

test('the narrowest policy that says something of the vector holds, and is named', () => {
  const wide = policy({ 'tcp-syn': { pps: 1_000 }, icmp: { pps: 500 } });
  const narrow = policy({ 'tcp-syn': { pps: 80_000 } }, { subnets: [victim] });
  const rig = new Rig({ policies: [wide, narrow] });
  rig.run(5, [syn(50_000), syn(5_000, '203.0.113.8'), { dst: victim, vector: 'icmp', pps: 800 }]);
  assert.deepEqual(
    rig.phases('started').map(({ dst, threshold }) => [dst, threshold.vector, threshold.policy]),
    [
      ['203.0.113.8', 'tcp-syn', wide.uuid],
      [victim, 'icmp', wide.uuid],
    ],
  );
});
