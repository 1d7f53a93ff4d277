import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentFilter, AgentRule, AgentTunnel } from '@levee/contract/agent.ts';
import type { AgentEntry } from '../state/objects.ts';
import {
  createRig,
  isMade,
  isReadable,
  isTakenByKernel,
  type Rig,
  refusedMegabits,
  refusedNumber,
  refusedRate,
  textOf,
} from '../testing/enforcer-rig.ts';
import { filterOf } from '../testing/filters.ts';
import { objectsOf } from '../testing/objects.ts';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';

async function rigFor(t: TestContext): Promise<Rig> {
  const rig = await createRig();
  t.after(() => rig.close());
  return rig;
}

/** Only the lines that differ: a table is long. */
function assertSame(actual: string, expected: string, note?: string): void {
  const [has, wants] = [actual.split('\n'), expected.split('\n')];
  const difference = {
    tooMuch: has.filter((line) => !wants.includes(line)),
    missing: wants.filter((line) => !has.includes(line)),
  };
  assert.deepEqual(difference, { tooMuch: [], missing: [] }, note);
}

async function settledOn(rig: Rig): Promise<void> {
  await rig.idle();
  assertSame(rig.dump(), await rig.expected());
  assert.equal(textOf(rig.tunnels.devices), textOf(rig.wantedTunnels));
  assert.deepEqual(rig.lies, []);
}

const refusedRule = (n: number, fields: Partial<AgentRule> = {}): AgentRule =>
  ruleOf(n, { ratelimit: refusedRate, ...fields });

test('without any state the kernel is not touched', async (t) => {
  const rig = await rigFor(t);
  await rig.idle();
  assert.equal(rig.world.transactions, 0);
});

test('a rule that the kernel refuses is set aside with its reason; the others are in force', async (t) => {
  const rig = await rigFor(t);
  await rig.deliver();
  await rig.idle();
  const rules = Array.from({ length: 64 }, (_, n) => (n === 37 ? refusedRule(n) : ruleOf(n)));
  rig.change(rules, []);
  const before = rig.world.transactions;
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), [
    { uuid: uuidOf(37), reason: 'the kernel refuses it: Numerical result out of range' },
  ]);
  assert.ok(
    rig.world.transactions - before <= 2 * Math.log2(64) + 2,
    `${rig.world.transactions - before} transactions`,
  );
});

test('a rule that is refused in a full load is set aside too', async (t) => {
  const rig = await rigFor(t);
  rig.change([...Array.from({ length: 30 }, (_, n) => ruleOf(n)), refusedRule(30), refusedRule(31)], []);
  await rig.deliverSnapshot();
  await settledOn(rig);
  assert.equal(rig.enforcer.failures().length, 2);
});

test('a rule whose new form is refused is not left in force in its former one', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), ruleOf(2)], []);
  await rig.deliver();
  await rig.idle();
  rig.change([refusedRule(1)], []);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.enforcer.failures()[0]?.uuid, uuidOf(1));
});

test('a refused rule is tried again when it changes, and when the whole state comes anew', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), refusedRule(2), refusedRule(3)], []);
  await rig.deliver();
  await rig.idle();
  rig.change([ruleOf(2)], []);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(
    rig.enforcer.failures().map(({ uuid }) => uuid),
    [uuidOf(3)],
  );
  const refuse = rig.world.refuse;
  rig.world.refuse = () => undefined;
  await rig.deliverSnapshot();
  await rig.idle();
  assert.deepEqual(rig.enforcer.failures(), []);
  assert.match(rig.dump(), new RegExp(`${refusedRate}/second`));
  rig.world.refuse = refuse;
});

test('a rule that cannot be understood is reported and stops nothing', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), ruleOf(2, { dst: 'nonsense' }), ruleOf(3)], []);
  await rig.deliver();
  await settledOn(rig);
  const [failure] = rig.enforcer.failures();
  assert.equal(failure?.uuid, uuidOf(2));
  assert.match(failure?.reason ?? '', /^dst: /);
  await rig.restart();
  assert.deepEqual(rig.enforcer.failures(), [failure]);
  rig.change([], [uuidOf(2)]);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), []);
});

test('a filter that the kernel refuses is found among the others as a rule is, in a change and in a full load', async (t) => {
  const rig = await rigFor(t);
  await rig.deliver();
  await rig.idle();
  const filters = Array.from({ length: 64 }, (_, n) => filterOf(n, n === 37 ? { ratelimit: refusedMegabits } : {}));
  rig.change([...filters, ruleOf(100)], []);
  const before = rig.world.transactions;
  await rig.deliver();
  await settledOn(rig);
  const failures = [{ uuid: uuidOf(37), reason: 'the kernel refuses it: Numerical result out of range' }];
  assert.deepEqual(rig.enforcer.failures(), failures);
  assert.ok(rig.world.transactions - before <= 2 * Math.log2(65) + 2);
  rig.enforcer.reload();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), failures);
  assert.deepEqual([rig.enforcer.statistics.rules, rig.enforcer.statistics.filters], [1, 64]);
});

test('a filter of a kind that this release does not know is left out with the reason, and stops nothing', async (t) => {
  const rig = await rigFor(t);
  rig.change([filterOf(1), filterOf(2, { filter: 9999 }), ruleOf(3)], []);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), [
    { uuid: uuidOf(2), reason: "this router's agent knows no filters of kind 9999: a newer release may" },
  ]);
});

test('rules that only an ingress hook can meet fail on a router without one, and the others are in force', async (t) => {
  const rig = await rigFor(t);
  const types = ['broadcast', 'multicast', 'other'] as const;
  rig.change([...types.map((packettype, n) => ruleOf(n, { packettype })), ruleOf(3, { packettype: 'host' })], []);
  rig.change([ruleOf(4), ruleOf(5, { packettype: 'broadcast', disabled: true })], []);
  await rig.deliver();
  await settledOn(rig);
  const failures = rig.enforcer.failures();
  assert.deepEqual(
    failures.map(({ uuid }) => uuid),
    [uuidOf(0), uuidOf(1), uuidOf(2)],
  );
  for (const [n, type] of types.entries()) {
    assert.match(failures[n]?.reason ?? '', new RegExp(`packettype ${type} .*LEVEE_EDGE_INGRESS_DEVICES`));
  }
  await rig.restart();
  assert.equal(rig.enforcer.statistics.adoptions, 1);
  assert.deepEqual(rig.enforcer.failures(), failures);
  rig.change([ruleOf(0, { packettype: 'host' })], [uuidOf(1)]);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), [failures[2]]);
});

test('with ingress devices the same rules are in force, and nothing fails', async (t) => {
  const rig = await createRig({ ingressDevices: ['eth0'] });
  t.after(() => rig.close());
  rig.change([ruleOf(1, { packettype: 'broadcast' })], []);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), []);
  assert.match(rig.dump(), /chain i4_0a000001_32: .*pkttype 1/);
});

test('a restart takes the table over without a transaction, refusals included, and changes go on from there', async (t) => {
  const rig = await rigFor(t);
  rig.change([...Array.from({ length: 20 }, (_, n) => ruleOf(n)), refusedRule(50)], []);
  await rig.deliver();
  await rig.idle();
  const failures = rig.enforcer.failures();
  const before = rig.world.transactions;
  await rig.restart();
  assert.equal(rig.world.transactions, before);
  assert.equal(rig.enforcer.statistics.adoptions, 1);
  assert.deepEqual(rig.enforcer.failures(), failures);
  rig.change([ruleOf(5, { action: 'accept' }), ruleOf(21)], [uuidOf(6)]);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.world.transactions, before + 1);
});

test('a change that moves nothing in the kernel is remembered, and the table still taken over', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await rig.idle();
  const before = rig.world.transactions;
  rig.change([ruleOf(2, { disabled: true })], []);
  await rig.deliver();
  await settledOn(rig);
  await rig.restart();
  assert.equal(rig.world.transactions, before);
  assert.equal(rig.enforcer.statistics.adoptions, 1);
  assert.equal(rig.enforcer.statistics.rules, 2);
});

test('a log that goes on without anything for this router is acknowledged without a transaction', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await rig.idle();
  const before = rig.world.transactions;
  rig.enforcer.changes('9.9', objectsOf(), []);
  await rig.idle();
  assert.equal(rig.enforcer.applied, '9.9');
  await rig.restart();
  await rig.idle();
  assert.deepEqual([rig.enforcer.applied, rig.enforcer.cursor], ['9.9', '9.9']);
  assert.equal(rig.enforcer.statistics.adoptions, 1);
  assert.equal(rig.world.transactions, before);
});

for (const moment of ['before', 'after'] as const) {
  test(`a process that died ${moment} the kernel did the change comes back to exactly the change`, async (t) => {
    const rig = await rigFor(t);
    rig.change([ruleOf(1)], []);
    await rig.deliver();
    await rig.idle();
    rig.change([ruleOf(2)], []);
    rig.dieAt(moment);
    await rig.deliver();
    await rig.idle();
    assert.ok(rig.dead);
    const before = rig.world.transactions;
    await rig.restart();
    await settledOn(rig);
    assert.equal(rig.world.transactions - before, moment === 'before' ? 1 : 0);
    assert.equal(rig.enforcer.statistics.fullLoads, 0);
  });
}

test('a table that somebody took away is put up whole at the next change', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), ruleOf(2)], []);
  await rig.deliver();
  await rig.idle();
  rig.meddle();
  rig.change([ruleOf(3)], []);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), []);
});

test('a machine that takes nothing blames no rule, says why, and gets everything once it can', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await rig.idle();
  const refuse = rig.world.refuse;
  rig.world.refuse = () => 'Cannot allocate memory';
  rig.change([ruleOf(2)], []);
  await rig.deliver();
  await until('it is in trouble', () => rig.enforcer.trouble !== undefined);
  assert.equal(rig.enforcer.trouble, 'the kernel takes no changes: Cannot allocate memory');
  assert.deepEqual(rig.enforcer.failures(), []);
  rig.change([ruleOf(3)], [uuidOf(1)]);
  await rig.deliver();
  rig.world.refuse = refuse;
  await until('it is out of trouble', () => rig.enforcer.trouble === undefined);
  await settledOn(rig);
});

test('a change of one filter leaves what the others remember: their sets are not touched', async (t) => {
  const rig = await rigFor(t);
  rig.change([filterOf(1), filterOf(2), filterOf(3, { dst: '10.0.0.0/16' })], []);
  await rig.deliver();
  await rig.idle();
  const statements: string[] = [];
  const refuse = rig.world.refuse;
  rig.world.refuse = (statement) => {
    statements.push(statement);
    return refuse(statement);
  };
  rig.change([filterOf(2, { ratelimit: 5 }), ruleOf(9, { dst: '10.0.0.1' })], []);
  // Half of all is other than before: small tables are changed all the same.
  await rig.deliverSnapshot();
  await settledOn(rig);
  assert.ok(statements.length > 0);
  for (const n of [1, 3]) {
    const touching = statements.filter((text) => /^(add|delete|flush) (set|element) /.test(text));
    assert.ok(!touching.some((text) => text.includes(uuidOf(n).replaceAll('-', ''))), touching.join('\n'));
  }
});

test('rules are enforced while a tunnel takes its time; only the acknowledgement waits', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await rig.idle();
  const { applied } = rig.enforcer;
  rig.tunnels.held = true;
  rig.change([tunnelOf(200)], []);
  await rig.deliver();
  rig.change([ruleOf(2)], []);
  await rig.deliver();
  await until('the rule is in force', () => rig.dump().includes('c4_0a000002_32'));
  await rig.idle();
  assert.equal(rig.enforcer.applied, applied);
  assert.equal(rig.enforcer.waitsForTunnels, true);
  rig.tunnels.held = false;
  await until('all is acknowledged', () => rig.enforcer.applied === rig.enforcer.cursor);
  await settledOn(rig);
});

test('after a restart what was acknowledged stands until the tunnels have been looked at, and without a state nothing does', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), filterOf(2), tunnelOf(200)], []);
  await rig.deliver();
  await settledOn(rig);
  const { applied } = rig.enforcer;
  assert.equal(rig.enforcer.resumes, undefined);
  rig.tunnels.held = true;
  await rig.restart();
  assert.deepEqual(
    [rig.enforcer.applied, rig.enforcer.resumes, rig.enforcer.complete, rig.enforcer.waitsForTunnels],
    [undefined, applied, true, true],
  );
  rig.tunnels.held = false;
  await until('the tunnels were looked at', () => rig.enforcer.applied === applied);
  assert.deepEqual([rig.enforcer.resumes, rig.enforcer.waitsForTunnels], [undefined, false]);
  await rig.loseState();
  assert.deepEqual([rig.enforcer.applied, rig.enforcer.resumes, rig.enforcer.complete], [undefined, undefined, false]);
});

test('in a kernel that was booted since, tunnels are not there: what was acknowledged stands only where there were none', async (t) => {
  const rig = await rigFor(t);
  rig.boot();
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await settledOn(rig);
  const { applied } = rig.enforcer;
  rig.tunnels.held = true;
  await rig.restart();
  assert.deepEqual([rig.enforcer.applied, rig.enforcer.resumes], [undefined, applied]);
  rig.tunnels.held = false;
  rig.change([tunnelOf(200)], []);
  await rig.deliver();
  await settledOn(rig);
  rig.tunnels.held = true;
  await rig.restart();
  assert.deepEqual([rig.enforcer.applied, rig.enforcer.resumes], [undefined, undefined]);
  rig.tunnels.held = false;
  await until('the tunnels are made', () => rig.enforcer.applied === rig.enforcer.cursor);
});

test('a tunnel that cannot be made is among the failures, and its cursor acknowledged', async (t) => {
  const rig = await rigFor(t);
  rig.change([tunnelOf(200), tunnelOf(201, { number: refusedNumber }), ruleOf(1, { dst: 'nonsense' })], []);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.enforcer.applied, rig.enforcer.cursor);
  assert.deepEqual(
    rig.enforcer.failures().map(({ uuid }) => uuid),
    [uuidOf(1), uuidOf(201)],
  );
  assert.equal(rig.enforcer.statistics.tunnels, 2);
});

test('what is heard of tunnels alone costs the table no transaction', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1)], []);
  await rig.deliver();
  await rig.idle();
  const before = rig.world.transactions;
  rig.change([tunnelOf(200)], []);
  await rig.deliver();
  await settledOn(rig);
  rig.change([], [uuidOf(200)]);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.world.transactions, before);
  await rig.restart();
  assert.equal(rig.enforcer.statistics.adoptions, 1);
});

test('tunnels stay until they are known not to be wanted: without a state nothing is taken for nothing wanted', async (t) => {
  const rig = await rigFor(t);
  rig.change([tunnelOf(200)], []);
  await rig.deliver();
  await rig.idle();
  await rig.loseState();
  await rig.idle();
  assert.deepEqual([...rig.tunnels.devices.keys()], [uuidOf(200)]);
  rig.change([tunnelOf(201)], [uuidOf(200)]);
  await rig.deliver();
  await settledOn(rig);
  rig.change([], [uuidOf(201)]);
  await rig.loseState();
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.tunnels.devices.size, 0);
});

test('a control plane that tells of rules alone leaves filters and tunnels, and no cursor to go on from', async (t) => {
  const rig = await rigFor(t);
  rig.change([ruleOf(1), filterOf(2), filterOf(3, { ratelimit: refusedMegabits }), tunnelOf(200)], []);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.enforcer.complete, true);
  const failures = rig.enforcer.failures();

  rig.tellAll(false);
  rig.change([ruleOf(4)], [uuidOf(1)]);
  await rig.deliver();
  await settledOn(rig);
  assert.deepEqual([rig.enforcer.complete, rig.enforcer.cursor], [false, undefined]);
  rig.change([ruleOf(5)], []);
  await rig.deliverSnapshot();
  await settledOn(rig);
  assert.deepEqual(rig.enforcer.failures(), failures);
  await rig.restart();
  await settledOn(rig);
  assert.deepEqual([rig.enforcer.complete, rig.enforcer.cursor], [false, undefined]);

  rig.tellAll(true);
  rig.change([filterOf(6), tunnelOf(201)], [uuidOf(2), uuidOf(200)]);
  await rig.deliver();
  await settledOn(rig);
  assert.equal(rig.enforcer.complete, true);
  assert.equal(rig.enforcer.cursor, rig.enforcer.applied);
});

/** A small generator of its own: a failing sequence is named by its seed. */
function randomOf(seed: number): (below: number) => number {
  let state = (seed + 1) * 0x9e3779b9;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35) + 0x6d2b79f5;
    return ((state ^ (state >>> 16)) >>> 0) % below;
  };
}

const destinations = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '10.1.2.3', '10.1.2.4', '10.2.0.1', 'nonsense'];

function randomObject(random: (below: number) => number): AgentEntry | AgentTunnel {
  const draw = random(10);
  if (draw === 0) return randomTunnel(random);
  return draw < 4 ? randomFilter(random) : randomRule(random);
}

function randomTunnel(random: (below: number) => number): AgentTunnel {
  const n = 40 + random(4);
  return tunnelOf(n, random(6) === 0 ? { number: refusedNumber } : { number: n + 100 * random(2) });
}

function randomFilter(random: (below: number) => number): AgentFilter {
  return filterOf(20 + random(8), {
    dst: destinations[random(random(8) === 0 ? 7 : 6)] as string,
    priority: 1 + random(3),
    ...(random(9) === 0 ? { filter: 9999 } : {}),
    ...(random(3) === 0 ? { port: { dst: { start: 1 + random(3) } } } : {}),
    ...(random(5) === 0 ? { ratelimit: random(2) ? 100 : refusedMegabits } : {}),
  });
}

function randomRule(random: (below: number) => number): AgentRule {
  const n = random(14);
  const fields: Partial<AgentRule> = {
    dst: destinations[random(random(8) === 0 ? 7 : 6)] as string,
    action: (['drop', 'accept', 'continue', 'reject'] as const)[random(4)] as AgentRule['action'],
    priority: 1 + random(3),
    disabled: random(9) === 0,
    port: { dst: { start: 1 + random(3) } },
    ...(random(5) === 0 ? { ratelimit: random(2) ? 100 : refusedRate } : {}),
    ...(random(7) === 0 ? { statetype: 'established' as const } : {}),
  };
  return ruleOf(n, fields);
}

const sequences = 2000;

test(`${sequences} random sequences of changes, crashes, snapshots, partitions and meddling end in the wanted state`, async () => {
  let adoptions = 0;
  for (let seed = 0; seed < sequences; seed++) {
    const random = randomOf(seed);
    const rig = await createRig({ foldAboveBytes: random(2) ? 300 : 1 << 20 });
    const note = `seed ${seed}`;
    try {
      for (let step = 0; step < 10; step++) {
        if (rig.dead) await rig.restart();
        const upsert = new Map(
          Array.from({ length: random(4) }, () => randomObject(random)).map((object) => [object.uuid, object] as const),
        );
        const present = [...rig.wanted.keys(), ...rig.wantedTunnels.keys()];
        const remove = present.filter((uuid) => !upsert.has(uuid) && random(5) === 0);
        rig.change([...upsert.values()], remove);
        rig.tunnels.held = random(6) === 0;
        switch (random(10)) {
          case 0:
            break; // a partition: nothing arrives this time
          case 1:
            await rig.deliverSnapshot();
            break;
          case 2:
            rig.dieAt('before');
            await rig.deliver();
            break;
          case 3:
            rig.dieAt('after');
            await rig.deliver();
            break;
          case 4:
            rig.meddle();
            if (random(2)) rig.enforcer.reload();
            await rig.deliver();
            break;
          case 5:
            await rig.restart();
            adoptions += rig.enforcer.statistics.adoptions;
            await rig.deliver();
            break;
          default:
            await rig.deliver();
        }
        if (random(3) > 0) await rig.idle();
      }
      rig.tunnels.held = false;
      if (rig.dead) await rig.restart();
      rig.change([ruleOf(99, { dst: '10.9.9.9' })], []);
      rig.enforcer.reload();
      await rig.deliver();
      await rig.idle();
      if (rig.dead) {
        await rig.restart();
        await rig.deliver();
        await rig.idle();
      }
      assertSame(rig.dump(), await rig.expected(), note);
      assert.equal(textOf(rig.tunnels.devices), textOf(rig.wantedTunnels), note);
      assert.equal(rig.enforcer.applied, rig.enforcer.cursor, note);
      assert.deepEqual(rig.lies, [], note);
      const failing = [
        ...[...rig.wanted.values()].filter((entry) => !isReadable(entry) || !isTakenByKernel(entry)),
        ...[...rig.wantedTunnels.values()].filter((tunnel) => !isMade(tunnel)),
      ];
      assert.deepEqual(
        rig.enforcer
          .failures()
          .map(({ uuid }) => uuid)
          .sort(),
        failing.map(({ uuid }) => uuid).sort(),
        note,
      );
    } finally {
      await rig.close();
    }
  }
  assert.ok(adoptions > sequences / 10, `${adoptions} adoptions`);
});
