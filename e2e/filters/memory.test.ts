/**
 * What a filter remembers in the kernel against the model of it: how long, how much, and what its meters let through. With
 * a kind made for it, whose bounds are small.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Filter } from '@levee/core/filter/filter.ts';
import { type FilterKind, settlingSeconds, to } from '@levee/core/filter/filter-kind.ts';
import { createFilterMemory } from '@levee/core/filter/memory.ts';
import { createModelRouter, outcomeOf } from '@levee/core/filter/testing/model-router.ts';
import { testFilter, testKind, testPacket } from '@levee/core/filter/testing/test-kind.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { filterSet } from '@levee/core/nftables/names.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { KernelPath, packetKey } from '../kernel/kernel-path.ts';
import { Conversation } from './conversation.ts';

const skip = labObstacle() ?? false;
const seconds = 2;
const sources = 3;
const [opening, session, metered, crowded] = [1, 2, 3, 4];
/** Told apart by the meter `few`. */
const few = 2;

/** The first octet decides: 1 opens, 2 passes from whoever has opened, 3 and 4 are metered. */
const kind: FilterKind = testKind(
  {
    settles: true,
    remembers: { seconds, sources },
    meters: [
      { name: 'each', of: 'source', packetsPerSecond: 1, burst: 7 },
      { name: 'few', of: 'source', packetsPerSecond: 1, burst: 7, most: few },
    ],
    judge({ payload, known, settling }) {
      const first = payload?.[0];
      if (first === opening) return { outcome: 'pass', why: 'an opening', remembers: true };
      if (first === metered) return { outcome: 'pass', why: 'metered', charges: ['each'] };
      if (first === crowded) return { outcome: 'pass', why: 'metered with few', charges: ['few'] };
      if (known) return { outcome: 'pass', why: 'a known source', remembers: true };
      return settling ? { outcome: 'pass', why: 'settling' } : { outcome: 'discard', why: 'nobody known' };
    },
    compile: ({ above, discard, known, pass, remember, settling }) => ({
      udp: [
        `@ih,0,8 ${opening} ${remember} ${pass}`,
        `@ih,0,8 ${opening} ${pass}`,
        `@ih,0,8 ${metered} ${above('each')} ${discard}`,
        `@ih,0,8 ${metered} ${pass}`,
        `@ih,0,8 ${crowded} ${above('few')} ${discard}`,
        `@ih,0,8 ${crowded} ${pass}`,
        `${known} ${remember} ${pass}`,
        `${settling} ${pass}`,
      ],
    }),
  },
  { defaultPorts: [to('udp', 7)] },
);
const filter: Filter = testFilter(kind, { dst: { family: 4, value: 0x0a100007n, length: 32 } });
const filter6: Filter = testFilter(kind, {
  uuid: 'filter6',
  dst: { family: 6, value: (0x20010db8n << 96n) + 7n, length: 128 },
});
const clients: Readonly<Record<Family, bigint>> = { 4: 0x64400000n, 6: 0xfd77n << 112n };

let kernel: KernelPath;
before(() => {
  if (!skip) kernel = new KernelPath('memory');
});
after(() => kernel?.remove());

function load(): void {
  kernel.load(createCompiler().replace([filter, filter6], '0123456789abcdef').text);
}

function packet(source: number, first: number): Packet {
  return packetTo(filter, BigInt(source), first);
}

/** From one host of an IPv6 network of 64 bits. */
function packet6(network: number, host: number, first: number): Packet {
  return packetTo(filter6, (BigInt(network) << 64n) + BigInt(host), first);
}

function packetTo({ dst: { family, value } }: Filter, source: bigint, first: number): Packet {
  const payload = Uint8Array.of(first);
  return testPacket({
    family,
    source: clients[family] + source,
    destination: value,
    payload,
    totalLengthBytes: (family === 4 ? 28 : 48) + payload.length,
  });
}

/** Which of the packets arrive, in order. */
async function sendAll(packets: readonly Packet[]): Promise<boolean[]> {
  const conversation = new Conversation();
  const { forwarded } = await kernel.send(
    packets.map((each, index) => buildFrame(conversation.spec(each, 'client', index + 1))),
  );
  return packets.map((_, index) => forwarded.get(packetKey(packets[index]?.family ?? 4, index + 1)) === 1);
}

function listed(part: string): string {
  return kernel.path.router.run('nft', ['list', 'set', 'inet', 'levee', filterSet(part, filter.uuid)]);
}

/** Milliseconds until the one source is forgotten; undefined: nobody is known. */
function remaining(): number | undefined {
  const found = /expires (?:(\d+)s)?(?:(\d+)ms)?/.exec(listed('known'));
  return found ? Number(found[1] ?? 0) * 1000 + Number(found[2] ?? 0) : undefined;
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, `not within 10 s: ${listed('known')}`);
    await delay(50);
  }
}

function stopSettling(): void {
  for (const { uuid } of [filter, filter6]) kernel.load(`flush set inet levee ${filterSet('settling', uuid)}\n`);
}

test('a source is known from its opening on, again and again as long as it goes on, and then forgotten', {
  skip,
}, async () => {
  load();
  stopSettling();
  assert.deepEqual(await sendAll([packet(1, session), packet(1, opening), packet(1, session)]), [false, true, true]);
  await until(() => (remaining() ?? 0) < seconds * 500);
  assert.deepEqual(await sendAll([packet(1, session)]), [true]);
  assert.ok((remaining() ?? 0) > seconds * 500, 'what a known source sends keeps it known');
  await until(() => remaining() === undefined);
  assert.deepEqual(await sendAll([packet(1, session)]), [false]);
});

test('as many sources are remembered as there is room for; the openings of others pass all the same', {
  skip,
}, async () => {
  load();
  stopSettling();
  const memory = createFilterMemory();
  const router = createModelRouter([filter], memory);
  const packets = [opening, session].flatMap((first) => [1, 2, 3, 4, 5].map((source) => packet(source, first)));
  const meant = packets.map((each) => outcomeOf(router.route(each, true).verdict) === 'pass');
  assert.deepEqual(meant, [true, true, true, true, true, true, true, true, false, false]);
  assert.deepEqual(await sendAll(packets), meant);
});

test('a meter lets its burst pass of each source, and of a flood hardly more', { skip }, async () => {
  load();
  const router = createModelRouter([filter]);
  const packets = [1, 2].flatMap((source) => Array.from({ length: 60 }, () => packet(source, metered)));
  const meant = packets.filter((each) => outcomeOf(router.route(each, true).verdict) === 'pass').length;
  assert.equal(meant, 14);
  const passed = (await sendAll(packets)).filter(Boolean).length;
  // A token a second may come to each while the frames are sent.
  assert.ok(passed >= meant && passed <= meant + 2, `${passed} passed`);
});

test('sources that a meter has no place for share ten times the bound of one', { skip }, async () => {
  load();
  const router = createModelRouter([filter]);
  const from = (source: number, count: number) => Array.from({ length: count }, () => packet(source, crowded));
  const newcomers = Array.from({ length: 200 }, (_, index) => packet(10 + index, crowded));
  const packets = [...from(1, 1), ...from(2, 1), ...newcomers, ...from(1, 20), ...from(9, 20)];
  const meant = packets.map((each) => outcomeOf(router.route(each, true).verdict) === 'pass');
  const passing = (all: readonly boolean[]) => {
    const [crowd, placed, late] = [all.slice(2, 202), all.slice(202, 222), all.slice(222)];
    return [crowd, placed, late].map((each) => each.filter(Boolean).length);
  };
  assert.deepEqual(passing(meant), [70, 6, 0]);
  const [crowd = 0, placed = 0, late = 0] = passing(await sendAll(packets));
  // Ten tokens a second come to those that share while the frames are sent.
  assert.ok(crowd >= 70 && crowd <= 80, `${crowd} of the newcomers passed`);
  assert.ok(placed >= 6 && placed <= 8, `${placed} of a source with a place`);
  assert.ok(late <= 10, `${late} of one that came when nothing was left`);
});

test('an IPv6 source is its /64: it has one bound, and what one of its hosts opened is open to all, and to no other', {
  skip,
}, async () => {
  load();
  stopSettling();
  const router = createModelRouter([filter6]);
  const outcomes = [
    packet6(1, 1, opening),
    packet6(1, 2, session),
    packet6(2, 1, session),
    // Each alone in its network, and there is room for one network less.
    ...[1, 2, 3, 4].map((network) => packet6(network, 9, opening)),
    ...[1, 2, 3, 4].map((network) => packet6(network, 5, session)),
  ];
  const meant = outcomes.map((each) => outcomeOf(router.route(each, true).verdict) === 'pass');
  assert.deepEqual(meant, [true, true, false, true, true, true, true, true, true, true, false]);
  assert.deepEqual(await sendAll(outcomes), meant);

  const hosts = [1, 2].flatMap((network) => Array.from({ length: 60 }, (_, host) => packet6(network, host, metered)));
  const passing = hosts.filter((each) => outcomeOf(router.route(each, true).verdict) === 'pass').length;
  assert.equal(passing, 14);
  const passed = (await sendAll(hosts)).filter(Boolean).length;
  assert.ok(passed >= 14 && passed <= 16, `${passed} passed`);
});

test('a filter settles of itself: what says so in the kernel goes when its time is over', { skip }, async () => {
  load();
  assert.deepEqual(await sendAll([packet(9, session)]), [true]);
  assert.match(listed('settling'), new RegExp(`timeout ${settlingSeconds}s expires`));
  stopSettling();
  assert.deepEqual(await sendAll([packet(9, session)]), [false]);
});
