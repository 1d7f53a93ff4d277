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
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { filterSet } from '@levee/core/nftables/names.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { KernelPath, packetKey } from '../kernel/kernel-path.ts';
import { Conversation } from './conversation.ts';

const skip = labObstacle() ?? false;
const seconds = 2;
const sources = 3;
const [opening, session, metered] = [1, 2, 3];

/** The first octet decides: 1 opens, 2 passes from whoever has opened, 3 is metered. */
const kind: FilterKind = testKind(
  {
    settles: true,
    remembers: { seconds, sources },
    meters: [{ name: 'each', of: 'source', packetsPerSecond: 1, burst: 7 }],
    judge({ payload, known, settling }) {
      const first = payload?.[0];
      if (first === opening) return { outcome: 'pass', why: 'an opening', remembers: true };
      if (first === metered) return { outcome: 'pass', why: 'metered', charges: ['each'] };
      if (known) return { outcome: 'pass', why: 'a known source', remembers: true };
      return settling ? { outcome: 'pass', why: 'settling' } : { outcome: 'discard', why: 'nobody known' };
    },
    compile: ({ above, discard, known, pass, remember, settling }) => ({
      udp: [
        `@ih,0,8 ${opening} ${remember} ${pass}`,
        `@ih,0,8 ${opening} ${pass}`,
        `@ih,0,8 ${metered} ${above('each')} ${discard}`,
        `@ih,0,8 ${metered} ${pass}`,
        `${known} ${remember} ${pass}`,
        `${settling} ${pass}`,
      ],
    }),
  },
  { defaultPorts: [to('udp', 7)] },
);
const filter: Filter = testFilter(kind, { dst: { family: 4, value: 0x0a100007n, length: 32 } });
const client = 0x64400000n;

let kernel: KernelPath;
before(() => {
  if (!skip) kernel = new KernelPath('memory');
});
after(() => kernel?.remove());

function load(): void {
  kernel.load(createCompiler().replace([filter], '0123456789abcdef').text);
}

function packet(source: number, first: number): Packet {
  const payload = Uint8Array.of(first);
  return testPacket({
    source: client + BigInt(source),
    destination: filter.dst.value,
    payload,
    totalLengthBytes: 28 + payload.length,
  });
}

/** Which of the packets arrive, in order. */
async function sendAll(packets: readonly Packet[]): Promise<boolean[]> {
  const conversation = new Conversation();
  const { forwarded } = await kernel.send(
    packets.map((each, index) => buildFrame(conversation.spec(each, 'client', index + 1))),
  );
  return packets.map((_, index) => forwarded.get(packetKey(4, index + 1)) === 1);
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
  kernel.load(`flush set inet levee ${filterSet('settling', filter.uuid)}\n`);
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

test('a filter settles of itself: what says so in the kernel goes when its time is over', { skip }, async () => {
  load();
  assert.deepEqual(await sendAll([packet(9, session)]), [true]);
  assert.match(listed('settling'), new RegExp(`timeout ${settlingSeconds}s expires`));
  stopSettling();
  assert.deepEqual(await sendAll([packet(9, session)]), [false]);
});
