import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import { startChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { type SeededProvider, seedProvider } from '../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../store/testing/test-postgres.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { type BgpReconciler, startBgp } from './reconciler.ts';
import { createFakeSpeaker, type FakeSpeaker } from './testing/fake-speaker.ts';
import {
  keyOfFields,
  readFlowrules,
  seedFlowrule,
  seedFlowruleDeletion,
  seedHold,
  testRoutes,
} from './testing/flowrules.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
const rigs: Rig[] = [];
after(async () => {
  await Promise.all(rigs.map((each) => each.stop()));
  await postgres?.stop();
});

interface Rig {
  readonly database: Database;
  readonly provider: SeededProvider;
  readonly speaker: FakeSpeaker;
  readonly wake: () => void;
  readonly start: (of?: FakeSpeaker) => BgpReconciler;
  stop(): Promise<void>;
}

async function rig(compareEveryMilliseconds = 30_000): Promise<Rig> {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const speaker = createFakeSpeaker();
  const tail = await startChangeTail(database);
  const running: BgpReconciler[] = [];
  const self: Rig = {
    database,
    provider,
    speaker,
    wake: () => tail.wake(),
    start(of = speaker) {
      const bgp = startBgp({
        database,
        tail,
        speaker: of,
        routes: testRoutes,
        log: () => {},
        compareEveryMilliseconds,
        patienceMilliseconds: 50,
      });
      running.push(bgp);
      return bgp;
    },
    async stop() {
      await Promise.all(running.map((bgp) => bgp.stop()));
      await tail.stop();
    },
  };
  rigs.push(self);
  return self;
}

const fieldsOf = (last: number, more: object = {}) => ({
  dst: `198.18.0.${last}`,
  components: { protocol: 'udp', 'source-port': '53' },
  action: 'discard',
  ...more,
});
const standing = async ({ database }: Rig) =>
  (
    await database.pool.query<{ trouble: string | null; peers: unknown; flow_routes: number }>(
      'select * from bgp_speaker',
    )
  ).rows[0];
const allActive = async ({ database }: Rig) => (await readFlowrules(database.pool)).every(({ active }) => active);

test('a flowrule is announced soon after its commit, and its row goes once its route is withdrawn', async () => {
  const given = await rig();
  given.start();
  await waitUntil(async () => (await standing(given))?.trouble === null, 'the speaker is well');
  const fields = fieldsOf(1);
  const uuid = await seedFlowrule(given.database.pool, given.provider, { fields });
  const committed = performance.now();
  given.wake();
  await waitUntil(() => given.speaker.routes.has(keyOfFields(fields)), 'announced');
  assert.ok(performance.now() - committed < 500, `${performance.now() - committed} ms`);
  await waitUntil(() => allActive(given), 'active');
  await seedFlowruleDeletion(given.database.pool, uuid);
  given.wake();
  await waitUntil(async () => (await readFlowrules(given.database.pool)).length === 0, 'the row is gone');
  assert.equal(given.speaker.routes.size, 0);
  await given.stop();
});

test('what is held is not announced; held later it is withdrawn and stays; let go it is announced', async () => {
  const given = await rig();
  given.start();
  const fields = fieldsOf(1);
  const uuid = await seedFlowrule(given.database.pool, given.provider, { fields, held: 'Only observed.' });
  const other = fieldsOf(2);
  await seedFlowrule(given.database.pool, given.provider, { fields: other });
  given.wake();
  await waitUntil(() => given.speaker.routes.has(keyOfFields(other)), 'the other is announced');
  assert.equal(given.speaker.routes.has(keyOfFields(fields)), false);
  await seedHold(given.database.pool, uuid, null);
  given.wake();
  await waitUntil(() => given.speaker.routes.has(keyOfFields(fields)), 'announced');
  await seedHold(given.database.pool, uuid, 'Again only observed.');
  given.wake();
  await waitUntil(() => !given.speaker.routes.has(keyOfFields(fields)), 'withdrawn');
  await waitUntil(async () => (await readFlowrules(given.database.pool)).some(({ applied }) => !applied), 'freed');
  assert.equal((await readFlowrules(given.database.pool)).length, 2);
  await given.stop();
});

test('a malformed rule, one that is another than its destination, one outside and one twice never reach the speaker', async () => {
  const given = await rig();
  const { pool } = given.database;
  const good = fieldsOf(1);
  await seedFlowrule(pool, given.provider, { fields: good });
  const bad: [string, Parameters<typeof seedFlowrule>[2], RegExp][] = [
    ['malformed', { fields: fieldsOf(2, { dst: '198.18.0.300' }), dst: '198.18.0.2' }, /is no flowrule/],
    ['no rule', { fields: { dst: '198.18.0.3' }, dst: '198.18.0.3' }, /is no flowrule/],
    ['component', { fields: fieldsOf(4, { components: { 'source-port': '1e9' } }) }, /is no flowrule/],
    ['elsewhere', { fields: fieldsOf(5, { dst: '8.8.8.8' }), dst: '198.18.0.5' }, /not the one of the rule/],
    ['everything', { fields: fieldsOf(6, { dst: '0.0.0.0/0' }), dst: '198.18.0.6' }, /not the one of the rule/],
    ['twice', { fields: { ...good, components: { 'source-port': '53', protocol: '17' } } }, /is the same route/],
  ];
  const uuids = new Map<string, RegExp>();
  for (const [, row, reason] of bad) uuids.set(await seedFlowrule(pool, given.provider, row), reason);
  // Its prefix is taken away behind the constraints' back.
  const outside = await seedFlowrule(pool, given.provider, { fields: fieldsOf(7) });
  uuids.set(outside, /holds/);
  await pool.query('alter table flowrule drop constraint flowrule_prefix');
  await pool.query(`update flowrule set provider_uuid = owner_uuid, prefix = '198.18.0.0/15' where uuid = $1`, [
    outside,
  ]);
  const stranger = await seedProvider(pool, '203.0.113.0/24');
  await pool.query('update flowrule set provider_uuid = $2, owner_uuid = $2 where uuid = $1', [outside, stranger.uuid]);
  given.start();
  await waitUntil(
    async () => (await readFlowrules(pool)).filter(({ failure }) => failure !== null).length === uuids.size,
    'all refused',
  );
  for (const { uuid, failure, applied } of await readFlowrules(pool)) {
    const reason = uuids.get(uuid);
    if (reason === undefined) continue;
    assert.match(failure ?? '', reason);
    assert.equal(applied, false);
  }
  // What is refused is noted before anything is announced.
  await waitUntil(() => given.speaker.told.length > 0, 'the good one is announced');
  assert.deepEqual(given.speaker.told, [`+ ${keyOfFields(good)}`]);
  await given.stop();
});

test('what others announce is left alone, and a flowrule with the same route is refused until they are gone', async () => {
  const given = await rig(40);
  const fields = fieldsOf(1);
  const key = keyOfFields(fields);
  given.speaker.foreign.add(key);
  given.start();
  await seedFlowrule(given.database.pool, given.provider, { fields });
  given.wake();
  await waitUntil(
    async () => (await readFlowrules(given.database.pool))[0]?.failure?.startsWith('Another program') === true,
    'refused',
  );
  assert.deepEqual(given.speaker.told, []);
  given.speaker.foreign.clear();
  await waitUntil(() => given.speaker.routes.has(key), 'announced');
  await given.stop();
});

test('one that another program has replaced is left to it, as active rule, as withdrawn one and as changed one', async () => {
  const given = await rig(40);
  given.start();
  const wanted = [1, 2].map((last) => fieldsOf(last));
  const wantedBlackhole = { dst: '198.18.0.3', components: {}, action: 'blackhole' };
  const uuids: string[] = [];
  for (const fields of [...wanted, wantedBlackhole]) {
    uuids.push(await seedFlowrule(given.database.pool, given.provider, { fields }));
  }
  given.wake();
  await waitUntil(() => allActive(given), 'active');
  const keys = [...given.speaker.routes.keys()];
  const told = given.speaker.told.length;
  for (const key of keys) given.speaker.replace(key);
  const failed = async () =>
    (await readFlowrules(given.database.pool)).filter(
      ({ failure, deleted }) => !deleted && failure?.startsWith('Another program'),
    );
  await waitUntil(async () => (await failed()).length === keys.length, 'all are refused');
  await seedFlowruleDeletion(given.database.pool, uuids[0] ?? '');
  given.wake();
  await waitUntil(
    async () => (await readFlowrules(given.database.pool)).every(({ deleted, applied }) => !deleted || !applied),
    'the withdrawn one is free',
  );
  assert.deepEqual([...given.speaker.foreign].sort(), keys.sort());
  assert.deepEqual(given.speaker.told.slice(told), []);
  given.speaker.foreign.clear();
  await waitUntil(() => given.speaker.routes.size === 2, 'the other two are announced again');
  await waitUntil(async () => (await failed()).length === 0, 'and say so');
  await given.stop();
});

test('what another program announced a moment ago is neither replaced nor withdrawn by the next change', async () => {
  const given = await rig();
  given.start();
  const [fields, late] = [fieldsOf(1), fieldsOf(2)];
  const uuid = await seedFlowrule(given.database.pool, given.provider, { fields });
  given.wake();
  await waitUntil(() => allActive(given), 'active');
  given.speaker.foreign.add(keyOfFields(late));
  given.speaker.replace(keyOfFields(fields));
  const told = given.speaker.told.length;
  await seedFlowruleDeletion(given.database.pool, uuid);
  await seedFlowrule(given.database.pool, given.provider, { fields: late });
  given.wake();
  await waitUntil(async () => {
    const [only, ...more] = await readFlowrules(given.database.pool);
    return more.length === 0 && only?.failure?.startsWith('Another program') === true;
  }, 'the one is gone, the other refused');
  assert.deepEqual(given.speaker.told.slice(told), []);
  assert.equal(given.speaker.foreign.size, 2);
  await given.stop();
});

test('a speaker that refuses one rule takes all others, and the one heals when it takes it', async () => {
  const given = await rig(40);
  const [one, other] = [fieldsOf(1), fieldsOf(2)];
  given.speaker.refuses.add(keyOfFields(one));
  given.start();
  for (const fields of [one, other]) await seedFlowrule(given.database.pool, given.provider, { fields });
  given.wake();
  const rows = () => readFlowrules(given.database.pool);
  await waitUntil(async () => (await rows())[0]?.failure === 'The fake refuses it.', 'refused');
  await waitUntil(async () => (await rows())[1]?.active === true, 'the other is active');
  given.speaker.refuses.clear();
  await waitUntil(() => allActive(given), 'healed');
  assert.equal((await rows())[0]?.failure, null);
  await given.stop();
});

test('while the speaker is away that is stored; when it is back, everything is, and routes without a row are gone', async () => {
  const given = await rig();
  given.start();
  const fields = [1, 2, 3].map((last) => fieldsOf(last));
  const uuids = [];
  for (const each of fields) uuids.push(await seedFlowrule(given.database.pool, given.provider, { fields: each }));
  given.wake();
  await waitUntil(() => allActive(given), 'all are active');
  given.speaker.partition();
  await waitUntil(async () => (await standing(given))?.trouble === 'The fake is away.', 'it is said');
  await seedFlowruleDeletion(given.database.pool, uuids[0] ?? '');
  await given.database.pool.query('delete from flowrule where uuid = $1', [uuids[1]]);
  const late = fieldsOf(4);
  await seedFlowrule(given.database.pool, given.provider, { fields: late });
  given.wake();
  given.speaker.heal();
  const expected = [fields[2], late].map((each) => keyOfFields(each)).sort();
  await waitUntil(() => [...given.speaker.routes.keys()].sort().join() === expected.join(), 'as it should be');
  await waitUntil(async () => (await standing(given))?.trouble === null, 'well again');
  await waitUntil(async () => (await readFlowrules(given.database.pool)).length === 2, 'the marked row is gone');
  await given.stop();
});

test('one replica leads: a second one announces nothing until the first has gone', async () => {
  const given = await rig();
  const first = given.start();
  await waitUntil(async () => (await standing(given)) !== undefined, 'the first leads');
  const second = createFakeSpeaker();
  given.start(second);
  const fields = fieldsOf(1);
  await seedFlowrule(given.database.pool, given.provider, { fields });
  given.wake();
  await waitUntil(() => given.speaker.routes.size === 1, 'the first announces');
  assert.deepEqual(second.told, []);
  await first.stop();
  await waitUntil(() => second.routes.has(keyOfFields(fields)), 'the second takes over');
  await given.stop();
});

/** The same numbers each time: a failure can be looked at. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('after 2 000 random changes, crashes, restarts, partitions and broken calls the speaker has what is stored', async () => {
  const given = await rig(200);
  const { database, provider, speaker } = given;
  const random = numbersFrom(7);
  let bgp = given.start();
  const live = new Map<string, RouteKey>();
  const steps: (() => Promise<void> | void)[] = [
    async () => {
      const fields = fieldsOf(random(40), random(3) === 0 ? { action: 'rate-limit', ratelimit: 1_000 } : {});
      const key = keyOfFields(fields);
      if ([...live.values()].includes(key)) return;
      live.set(await seedFlowrule(database.pool, provider, { fields }), key);
    },
    async () => {
      const [uuid] = [...live.keys()].slice(random(live.size));
      if (uuid === undefined) return;
      await seedFlowruleDeletion(database.pool, uuid);
      live.delete(uuid);
    },
    () => given.wake(),
    () => speaker.crash(),
    () => speaker.start(),
    () => speaker.partition(),
    () => speaker.heal(),
    () => speaker.breakAfter(random(3)),
    async () => {
      if (random(10) > 0) return;
      await bgp.stop();
      bgp = given.start();
    },
  ];
  for (let step = 1; step <= 2_000; step++) {
    await steps[random(10) < 6 ? random(2) : random(steps.length)]?.();
    if (step % 200 !== 0) continue;
    speaker.start();
    given.wake();
    const expected = [...live.values()].sort().join();
    await waitUntil(
      async () =>
        [...speaker.routes.keys()].sort().join() === expected &&
        // Marked rows that were never announced are the sweep's.
        (await readFlowrules(database.pool)).every(({ active, deleted, applied }) => (deleted ? !applied : active)),
      `converged after ${step} steps`,
      20_000,
    );
  }
  await given.stop();
});
