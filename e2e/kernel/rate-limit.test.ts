import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { burstPackets, type Rule } from '@levee/core/firewall/rule.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { hardwareAddress, RouterPath } from '@levee/lab/router-path.ts';
import { packetKey } from './kernel-path.ts';
import { type Measured, measureFlood } from './measured-flood.ts';
import { protectedPrefixes } from './world.ts';

const skip = labObstacle() ?? false;
const limit = 200;
const seconds = 2.5;
const tolerance = 0.05;
const mark = '0123456789abcdef';

let path: RouterPath;
before(() => {
  if (!skip) path = new RouterPath({ protectedPrefixes, label: 'rate' });
});
after(() => path?.remove());

/** One bucket: packets to `destinations` carry `id`, and together may pass `limit` a second. */
interface Group {
  readonly name: string;
  readonly family: 4 | 6;
  readonly id: number;
  readonly destinations: readonly bigint[];
}

let sequence = 0;
function rule(fields: Partial<Rule> & Pick<Rule, 'dst' | 'action'>): Rule {
  sequence++;
  const uuid = `01900000-0000-7000-8000-${sequence.toString(16).padStart(12, '0')}`;
  return { uuid, sequence, priority: 10, protocol: 'udp', disabled: false, ...fields };
}

function host(family: 4 | 6, number: number): { family: 4 | 6; value: bigint; length: number } {
  const value = family === 4 ? 0x0a100000n + BigInt(number) : (0x20010db8n << 96n) + BigInt(number);
  return { family, value, length: family === 4 ? 32 : 128 };
}

function framesOf(groups: readonly Group[]): Uint8Array[] {
  const frames: Uint8Array[] = [];
  // As many of each group, whatever the number of its destinations: every bucket sees the same flood.
  for (let turn = 0; turn < 24; turn++) {
    for (const { family, id, destinations } of groups) {
      frames.push(
        buildFrame({
          family,
          source: (family === 4 ? 0x64400000n : 0xfd77n << 112n) + BigInt(turn + 1),
          destination: destinations[turn % destinations.length] as bigint,
          sourceHardware: hardwareAddress.attacker,
          destinationHardware: hardwareAddress.routerOutside,
          id,
          transport: { kind: 'udp', sourcePort: 1000 + turn, destinationPort: 53 },
        }),
      );
    }
  }
  return frames;
}

/** Floods all groups at once, each at 100 times the limit. `reload` gives full buckets. */
function flood(groups: readonly Group[], reload: () => void, meanwhile?: () => void): Promise<Measured> {
  const packetsPerSecond = limit * 100 * groups.length;
  return measureFlood({
    path,
    frames: framesOf(groups),
    seconds,
    packetsPerSecond,
    reload,
    ...(meanwhile && { meanwhile }),
  });
}

/** Passed packets against tokens: the burst, and the rate for as long as the flood lasted. */
function assertPassed(groups: readonly Group[], { result, seen }: Measured, say: (text: string) => void): void {
  const expected = limit * result.seconds + burstPackets(limit);
  const overload = result.packets / groups.length / result.seconds / limit;
  say(
    `${overload.toFixed(0)} times the limit for ${result.seconds.toFixed(2)} s; expected ${expected.toFixed(0)} packets each`,
  );
  assert.ok(overload > 50, `only ${overload.toFixed(1)} times the limit`);
  for (const group of groups) {
    const passed = seen.forwarded.get(packetKey(group.family, group.id)) ?? 0;
    say(`${group.name}: ${passed} passed (${((passed / expected - 1) * 100).toFixed(1)} %)`);
  }
  for (const group of groups) {
    const passed = seen.forwarded.get(packetKey(group.family, group.id)) ?? 0;
    assert.ok(Math.abs(passed / expected - 1) <= tolerance, `${group.name}: ${passed} passed, expected ${expected}`);
  }
}

const actions = ['accept', 'continue', 'drop', 'reject'] as const;

test('each action passes its limit under a hundredfold flood, in IPv4 and IPv6', { skip }, async (t) => {
  const groups: Group[] = [];
  const rules: Rule[] = [];
  for (const family of [4, 6] as const) {
    for (const [index, action] of actions.entries()) {
      const dst = host(family, 1 + index);
      groups.push({ name: `${action} IPv${family}`, family, id: 1 + index, destinations: [dst.value] });
      rules.push(rule({ dst, action, rateLimitPacketsPerSecond: limit }));
    }
  }
  const load = (): void => path.router.loadNft(createCompiler().replace(rules, mark).text);
  const measured = await flood(groups, load);
  assertPassed(groups, measured, (text) => t.diagnostic(text));
  for (const group of groups) {
    const answers = measured.seen.answered.get(packetKey(group.family, group.id))?.length ?? 0;
    if (!group.name.startsWith('reject')) {
      assert.equal(answers, 0, `${group.name} was answered`);
      continue;
    }
    const most = limit * measured.result.seconds + burstPackets(limit);
    t.diagnostic(`${group.name}: ${answers} answers`);
    assert.ok(answers > 0 && answers <= most * (1 + tolerance), `${group.name}: ${answers} answers, at most ${most}`);
  }
});

test('a wide rule’s copies share one bucket, also while rules around them change', { skip }, async (t) => {
  const groups: Group[] = [];
  const rules: Rule[] = [];
  const narrow: Rule[] = [];
  for (const family of [4, 6] as const) {
    for (const [index, action] of actions.entries()) {
      const base = 0x100 * (index + 1);
      const length = (family === 4 ? 32 : 128) - 8;
      const wide = { ...host(family, base), length };
      // Three hosts have chains of their own, with the wide rule in each; a fourth has none.
      const hosts = [1, 2, 3, 4].map((number) => host(family, base + number));
      groups.push({
        name: `${action} IPv${family} over 4 destinations`,
        family,
        id: 1 + index,
        destinations: hosts.map(({ value }) => value),
      });
      rules.push(rule({ dst: wide, action, rateLimitPacketsPerSecond: limit, priority: 20 }));
      for (const dst of hosts.slice(0, 3))
        narrow.push(rule({ dst, action: 'continue', sourcePorts: { start: 7, end: 7 } }));
    }
  }
  let compiler = createCompiler();
  const apply = (plan: { text: string; commit(): void }): void => {
    if (plan.text !== '') path.router.loadNft(plan.text);
    plan.commit();
  };
  let changes = 0;
  const load = (): void => {
    compiler = createCompiler();
    apply(compiler.replace([...rules, ...narrow], mark));
  };
  const changeOne = (): void => {
    const one = narrow[changes % narrow.length] as Rule;
    const port = 8 + (changes++ % 100);
    apply(compiler.change({ upsert: [{ ...one, sourcePorts: { start: port, end: port } }], remove: [] }, mark));
  };
  const measured = await flood(groups, load, changeOne);
  assertPassed(groups, measured, (text) => t.diagnostic(text));
  t.diagnostic(`${changes} changes meanwhile`);
  assert.ok(changes >= 10);
});
