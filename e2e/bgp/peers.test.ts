/** Real gobgpd, BIRD and FRR: what a peer was told is what was asked, and stays so when gobgpd dies. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import { type Bird, startBird } from '@levee/lab/bgp/bird.ts';
import type { SeenRoute } from '@levee/lab/bgp/bird-flow-text.ts';
import { type Gobgpd, startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { type BgpReconciler, startBgp } from '@levee/server/backends/bgp/reconciler.ts';
import {
  readFlowrules,
  seedFlowrule,
  seedFlowruleDeletion,
  testRoutes,
} from '@levee/server/backends/bgp/testing/flowrules.ts';
import { type ChangeTail, startChangeTail } from '@levee/server/store/change-tail.ts';
import type { Database } from '@levee/server/store/database.ts';
import { type SeededProvider, seedProvider } from '@levee/server/store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';

const long = Number(process.env.LEVEE_TEST_BGP_ROUTES ?? 1_000);

let postgres: TestPostgres;
let database: Database;
let tail: ChangeTail;
let gobgpd: Gobgpd;
let bird: Bird;
let bgp: BgpReconciler;
let four: SeededProvider;
let six: SeededProvider;
before(async () => {
  postgres = await startTestPostgres();
  database = await postgres.createDatabase();
  four = await seedProvider(database.pool, '198.18.0.0/15');
  six = await seedProvider(database.pool, '2001:db8::/32');
  tail = await startChangeTail(database);
  gobgpd = await startGobgpd({ neighbors: [{ address: '127.0.0.2', asn: 64500 }] });
  bird = await startBird({ neighbor: gobgpd });
  const speaker = createGobgpSpeaker({ target: gobgpd.target, mark: testRoutes.mark });
  bgp = startBgp({ database, tail, speaker, routes: testRoutes, log: () => {} });
  await waitUntil(() => bird.established(), 'the session is up', 20_000);
});
after(async () => {
  await bgp?.stop();
  await tail?.stop();
  await Promise.all([bird?.remove(), gobgpd?.remove()]);
  await postgres?.stop();
});

type Fields = Readonly<Record<string, unknown>>;

const ofFour: Fields[] = [
  { dst: '198.18.0.5', components: {}, action: 'discard' },
  {
    dst: '198.18.1.0/24',
    components: {
      'source-prefix': '198.51.100.0/22',
      protocol: 'tcp',
      'destination-port': '80,443,1000-2000',
      'tcp-flags': 'syn&!ack&!rst,rst&fin,!psh&!urg',
      dscp: '0-10,46',
      fragment: '!is-fragment',
    },
    action: 'rate-limit',
    ratelimit: 125_000,
  },
  {
    dst: '198.18.0.6',
    components: { protocol: 'udp', 'source-port': '53,123', 'packet-length': '1000-65535' },
    action: 'redirect',
    redirect_target: '64500:666',
  },
  {
    dst: '198.18.0.6',
    components: { protocol: 'icmp', 'icmp-type': '0,8', 'icmp-code': '0-255' },
    action: 'redirect',
    redirect_target: '192.0.2.1:666',
  },
  {
    dst: '198.18.0.7',
    components: { port: '0-65535', fragment: 'dont-fragment&last-fragment,is-fragment&!first-fragment' },
    action: 'redirect',
    redirect_target: '4200000000:666',
  },
  { dst: '198.18.0.8', components: { protocol: '0-5,udp,200-255' }, action: 'mark', mark_dscp: 46 },
];
const ofSix: Fields[] = [
  { dst: '2001:db8:2::/47', components: {}, action: 'discard' },
  {
    dst: '2001:db8::1',
    components: {
      'source-prefix': '2001:db9:1::5',
      protocol: 'ipv6-icmp',
      'icmp-type': '128',
      'icmp-code': '0',
      'packet-length': '0-99',
      dscp: '46',
      fragment: 'is-fragment&!first-fragment,last-fragment',
      'flow-label': '5-1000000',
    },
    action: 'rate-limit',
    ratelimit: 16_777_216,
  },
  { dst: '2001:db8::2', components: { protocol: 'tcp', 'tcp-flags': 'syn' }, action: 'mark', mark_dscp: 0 },
  {
    dst: '2001:db8::3',
    components: { protocol: 'udp', port: '1', 'destination-port': '2', 'source-port': '3' },
    action: 'redirect',
    redirect_target: '1:4294967295',
  },
];

/** In a flowrule's own form, sorted. */
function canonical(routes: readonly (Fields | SeenRoute)[]): string[] {
  return routes
    .map((route) => {
      const parsed = parseFlowrule(route);
      assert.ok(parsed.ok, JSON.stringify([route, parsed.ok ? '' : parsed.problems]));
      return JSON.stringify(parsed.canonical);
    })
    .sort();
}

async function announced(fields: readonly Fields[], provider: SeededProvider): Promise<string[]> {
  const uuids: string[] = [];
  for (const each of fields)
    uuids.push(await seedFlowrule(database.pool, provider, { fields: { ...each, dst: canonicalDst(each) } }));
  tail.wake();
  return uuids;
}
const canonicalDst = (fields: Fields) => (JSON.parse(canonical([fields])[0] ?? '{}') as { dst: string }).dst;

test('every component and every action, of both families, is at BIRD exactly as it was asked, and goes with its flowrule', async () => {
  const wanted = [...ofFour, ...ofSix];
  const uuids = [...(await announced(ofFour, four)), ...(await announced(ofSix, six))];
  await waitUntil(async () => (await bird.flowCount()) === wanted.length, 'BIRD has them');
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(wanted));
  for (const seen of (await bird.flowAttributes()).values()) {
    assert.deepEqual(seen.largeCommunities, ['4200000000:17:1']);
  }
  await waitUntil(async () => (await readFlowrules(database.pool)).every(({ active }) => active), 'all are active');
  for (const uuid of uuids) await seedFlowruleDeletion(database.pool, uuid);
  tail.wake();
  await waitUntil(async () => (await bird.flowCount()) === 0, 'BIRD has none');
  await waitUntil(async () => (await readFlowrules(database.pool)).length === 0, 'no row is left');
});

test('a blackhole is a route with its communities, its next hop and our mark, and goes with its flowrule', async () => {
  const uuids = [
    ...(await announced([{ dst: '198.18.0.9', components: {}, action: 'blackhole' }], four)),
    ...(await announced([{ dst: '2001:db8::9', components: {}, action: 'blackhole' }], six)),
  ];
  await waitUntil(async () => (await bird.blackholes()).length === 2, 'BIRD has both');
  const common = {
    communities: ['65535:666', '65535:65281'],
    largeCommunities: ['4200000000:17:1'],
    extendedCommunities: [],
  };
  assert.deepEqual(await bird.blackholes(), [
    { ...common, prefix: '198.18.0.9/32', nextHop: '192.0.2.1' },
    { ...common, prefix: '2001:db8::9/128', nextHop: '100::1' },
  ]);
  for (const uuid of uuids) await seedFlowruleDeletion(database.pool, uuid);
  tail.wake();
  await waitUntil(async () => (await bird.blackholes()).length === 0, 'BIRD has none');
});

test('a rule too long for GoBGP and hostile ones are refused in front of it, and no session flaps', async () => {
  const since = (await bird.ask('show protocols levee')).join();
  const ranges = Array.from({ length: 60 }, (_, index) => `${index * 1000}-${index * 1000 + 5}`).join(',');
  const uuids = await announced([{ dst: '198.18.0.10', components: { port: ranges }, action: 'discard' }], four);
  const hostile = [
    { dst: '198.18.0.300', components: {}, action: 'discard' },
    { components: {}, action: 'discard' },
    { dst: '0.0.0.0/0', components: {}, action: 'discard' },
    { dst: '8.8.8.8', components: {}, action: 'blackhole' },
  ];
  for (const fields of hostile) {
    uuids.push(await seedFlowrule(database.pool, four, { fields, dst: '198.18.0.11' }));
  }
  tail.wake();
  const failures = async () => (await readFlowrules(database.pool)).filter(({ failure }) => failure !== null);
  await waitUntil(async () => (await failures()).length === uuids.length, 'all are refused');
  assert.match((await failures())[0]?.failure ?? '', /GoBGP garbles FlowSpec rules of more than 239/);
  // One that is fine arrives behind them: whatever they did, it has been done.
  const fine = await announced([{ dst: '198.18.0.12', components: {}, action: 'discard' }], four);
  await waitUntil(async () => (await bird.flowCount()) === 1, 'BIRD has the good one');
  assert.equal((await bird.ask('show protocols levee')).join(), since);
  for (const uuid of [...uuids, ...fine]) await seedFlowruleDeletion(database.pool, uuid);
  await database.pool.query('delete from flowrule where deletion_marked_at is not null and applied_position is null');
  tail.wake();
  await waitUntil(async () => (await readFlowrules(database.pool)).length === 0, 'no row is left');
});

test(`killed and started again with -r, gobgpd has ${long} routes again before a peer withdraws one`, async (context) => {
  const fields = Array.from({ length: long }, (_, index) => ({
    dst: `198.18.${10 + (index >> 8)}.${index & 255}`,
    components: { protocol: 'udp', 'source-port': '53' },
    action: 'discard',
  }));
  const uuids = await announced(fields, four);
  const begun = performance.now();
  await waitUntil(async () => (await bird.flowCount()) === long, 'BIRD has all', 30_000);
  context.diagnostic(`${long} routes at the peer ${Math.round(performance.now() - begun)} ms after the last commit`);
  await waitUntil(async () => (await readFlowrules(database.pool)).every(({ active }) => active), 'all are active');
  let fewest = long;
  let watching = true;
  const watch = (async () => {
    while (watching) {
      fewest = Math.min(fewest, await bird.flowCount());
      await delay(5);
    }
  })();
  for (let round = 0; round < 2; round++) {
    await gobgpd.kill();
    await gobgpd.start();
    await waitUntil(() => bird.established(), 'the session is up again', 30_000);
    // What is announced now travels behind all that was before.
    const [extra = ''] = await announced([{ dst: `198.18.9.${round}`, components: {}, action: 'discard' }], four);
    await waitUntil(async () => (await bird.flowCount()) > long, 'the next change arrives', 30_000);
    await seedFlowruleDeletion(database.pool, extra);
    tail.wake();
    await waitUntil(async () => (await bird.flowCount()) === long, 'and goes', 30_000);
  }
  watching = false;
  await watch;
  assert.equal(fewest, long, 'BIRD had fewer at a moment');
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(fields));
  for (const uuid of uuids) await seedFlowruleDeletion(database.pool, uuid);
  tail.wake();
  await waitUntil(async () => (await bird.flowCount()) === 0, 'BIRD has none', 30_000);
});
