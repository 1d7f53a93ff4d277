/** Real gobgpd, BIRD and FRR: what a peer was told is what was asked, and stays so when gobgpd dies. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Bird, startBird } from '@levee/lab/bgp/bird.ts';
import { type Gobgpd, startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import { createGobgpSpeaker } from '@levee/server/backends/bgp/gobgp/gobgp-speaker.ts';
import { seedFlowrule, testRoutes } from '@levee/server/backends/bgp/testing/flowrules.ts';
import { startTestPostgres, type TestPostgres } from '@levee/server/store/testing/test-postgres.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { startSweeper } from '@levee/server/sweep/sweeper.ts';
import { type Installation, openInstallation } from './installation.ts';
import { killRounds, neverComes } from './kill-rounds.ts';
import { canonical, ofFour, ofSix } from './wanted-routes.ts';

const long = Number(process.env.LEVEE_TEST_BGP_ROUTES ?? 1_000);

let postgres: TestPostgres;
let levee: Installation;
let gobgpd: Gobgpd;
let bird: Bird;
before(async () => {
  postgres = await startTestPostgres();
  levee = await openInstallation(postgres);
  gobgpd = await startGobgpd({ neighbors: [{ address: '127.0.0.2', asn: 64500 }, neverComes] });
  bird = await startBird({ neighbor: gobgpd });
  levee.start(createGobgpSpeaker({ target: gobgpd.target, mark: testRoutes.mark }));
  await waitUntil(() => bird.established(), 'the session is up', 20_000);
});
after(async () => {
  await levee?.stop();
  await Promise.all([bird?.remove(), gobgpd?.remove()]);
  await postgres?.stop();
});

test('every component and every action, of both families, is at BIRD exactly as it was asked, and goes with its flowrule', async () => {
  const wanted = [...ofFour, ...ofSix];
  const uuids = await levee.announce(wanted);
  await waitUntil(async () => (await bird.flowCount()) === wanted.length, 'BIRD has them');
  assert.deepEqual(canonical(await bird.flowRoutes()), canonical(wanted));
  for (const seen of (await bird.flowAttributes()).values()) {
    assert.deepEqual(seen.largeCommunities, ['4200000000:17:1']);
  }
  await waitUntil(levee.areActive, 'all are active');
  await levee.withdraw(uuids);
  await waitUntil(async () => (await bird.flowCount()) === 0, 'BIRD has none');
  await waitUntil(async () => (await levee.rows()).length === 0, 'no row is left');
});

test('a blackhole is a route with its communities, its next hop and our mark, and goes with its flowrule', async () => {
  const uuids = await levee.announce(
    ['198.18.0.9', '2001:db8::9'].map((dst) => ({ dst, components: {}, action: 'blackhole' })),
  );
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
  await levee.withdraw(uuids);
  await waitUntil(async () => (await bird.blackholes()).length === 0, 'BIRD has none');
});

test('a rule too long for GoBGP and hostile ones are refused in front of it, and no session flaps', async () => {
  const since = (await bird.ask('show protocols levee')).join();
  const ranges = Array.from({ length: 60 }, (_, index) => `${index * 1000}-${index * 1000 + 5}`).join(',');
  const uuids = await levee.announce([{ dst: '198.18.0.10', components: { port: ranges }, action: 'discard' }]);
  const hostile = [
    { dst: '198.18.0.300', components: {}, action: 'discard' },
    { components: {}, action: 'discard' },
    { dst: '0.0.0.0/0', components: {}, action: 'discard' },
    { dst: '8.8.8.8', components: {}, action: 'blackhole' },
  ];
  for (const fields of hostile) {
    uuids.push(await seedFlowrule(levee.database.pool, levee.provider, { fields, dst: '198.18.0.11' }));
  }
  levee.tail.wake();
  const failures = async () => (await levee.rows()).filter(({ failure }) => failure !== null);
  await waitUntil(async () => (await failures()).length === uuids.length, 'all are refused');
  assert.match((await failures())[0]?.failure ?? '', /GoBGP garbles FlowSpec rules of more than 239/);
  // One that is fine arrives behind them: whatever they did, it has been done.
  const fine = await levee.announce([{ dst: '198.18.0.12', components: {}, action: 'discard' }]);
  await waitUntil(async () => (await bird.flowCount()) === 1, 'BIRD has the good one');
  assert.equal((await bird.ask('show protocols levee')).join(), since);
  await levee.withdraw([...uuids, ...fine]);
  await levee.database.pool.query(
    'delete from flowrule where deletion_marked_at is not null and applied_position is null',
  );
  await waitUntil(async () => (await levee.rows()).length === 0, 'no row is left');
});

test(`killed and started again with -r, gobgpd has ${long} routes again before a peer withdraws one`, async (context) => {
  const { atPeerMilliseconds } = await killRounds({ levee, gobgpd, bird, routes: long, rounds: 2 });
  context.diagnostic(`${long} routes at the peer ${atPeerMilliseconds} ms after the last commit`);
});

test('a flowrule that expires is gone from the peer, and from the table, within seconds; its neighbour stays', async () => {
  const sweeper = startSweeper(levee.database.pool, { committed: () => levee.tail.wake() });
  try {
    const [stays, goes] = ['198.18.0.20', '198.18.0.21'].map((dst) => ({ dst, components: {}, action: 'discard' }));
    assert.ok(stays !== undefined && goes !== undefined);
    const kept = await levee.announce([stays]);
    const expiresAt = new Date(Date.now() + 1_500);
    await levee.announce([goes], { expiresAt });
    await waitUntil(async () => (await bird.flowCount()) === 2, 'BIRD has both');
    assert.ok(Date.now() < expiresAt.getTime(), 'it was there before it expired');
    await waitUntil(async () => (await bird.flowCount()) === 1, 'BIRD has one');
    const late = Date.now() - expiresAt.getTime();
    assert.ok(late >= 0 && late < 3_000, `${late} ms after it expired`);
    assert.deepEqual(canonical(await bird.flowRoutes()), canonical([stays]));
    await waitUntil(async () => (await levee.rows()).length === 1, 'the row is gone');
    await levee.withdraw(kept);
    await waitUntil(async () => (await bird.flowCount()) === 0, 'BIRD has none');
  } finally {
    await sweeper.stop();
  }
});
