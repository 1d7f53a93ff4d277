import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Entry } from '@levee/core/filter/entry.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import { dns } from '@levee/core/filter/kinds/dns.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { answeredKind } from '@levee/core/nftables/testing/test-kinds.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { openPacketSocket, PreparedFrames } from '@levee/lab/packet-socket.ts';
import { device, hardwareAddress, RouterPath } from '@levee/lab/router-path.ts';
import { packetKey } from './kernel-path.ts';
import { type Measured, measureFlood } from './measured-flood.ts';
import { protectedPrefixes } from './world.ts';

const skip = labObstacle() ?? false;
const seconds = 2.5;
const tolerance = 0.05;
const overload = 10;
const mark = '0123456789abcdef';
/** Packets of 8 000 octets: the bytes of 100 Mbit/s in numbers that a shared machine can send evenly. */
const mtu = 9000;
const question = Buffer.from('4d310100000100000000000007657861' + '6d706c6503636f6d0000010001', 'hex');

let path: RouterPath;
before(() => {
  if (!skip) path = new RouterPath({ protectedPrefixes, mtu, label: 'filter-rate' });
});
after(() => path?.remove());

/** One bucket: a filter over four destinations. */
interface Bucket {
  readonly filter: Filter;
  readonly family: 4 | 6;
  readonly id: number;
  readonly megabits: number;
  /** Of each IP packet. */
  readonly octets: number;
  /** What each datagram of the flood begins with. */
  readonly payload: Uint8Array;
}

const sources = 24;

function bucket(family: 4 | 6, id: number, megabits: number, octets: number, kind: Filter['kind']): Bucket {
  const value = family === 4 ? 0x0a100000n + BigInt(id * 4) : (0x20010db8n << 96n) + BigInt(id * 4);
  const uuid = `01900000-0000-7000-8000-${id.toString(16).padStart(11, '0')}${family}`;
  const dst = { family, value, length: family === 4 ? 30 : 126 };
  const filter = { uuid, sequence: id, priority: 10, dst, kind, rateLimitMegabitsPerSecond: megabits };
  return { filter, family, id, megabits, octets, payload: kind === dns ? question : Uint8Array.of(0) };
}

/** Turn by turn another source and another of the destinations. */
function flowFrame({ filter, family, id, octets, payload }: Bucket, turn: number): Uint8Array {
  return buildFrame({
    family,
    source: (family === 4 ? 0x64400000n : 0xfd77n << 112n) + BigInt(turn + 1),
    destination: filter.dst.value + BigInt(turn % 4),
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id,
    transport: { kind: 'udp', sourcePort: 1000 + turn, destinationPort: 53 },
    totalLength: octets,
    payload,
  });
}

/** Both sides of a flow's beginning: small, so that they take next to nothing from the bucket. */
function openingFrames(each: Bucket, turn: number): { question: Uint8Array; answer: Uint8Array } {
  const source = (each.family === 4 ? 0x64400000n : 0xfd77n << 112n) + BigInt(turn + 1);
  const destination = each.filter.dst.value + BigInt(turn % 4);
  const { family } = each;
  const totalLength = (family === 4 ? 20 : 40) + 8 + 1;
  return {
    question: buildFrame({
      family,
      source,
      destination,
      sourceHardware: hardwareAddress.attacker,
      destinationHardware: hardwareAddress.routerOutside,
      id: 0,
      transport: { kind: 'udp', sourcePort: 1000 + turn, destinationPort: 53 },
      totalLength,
      payload: Uint8Array.of(1),
    }),
    answer: buildFrame({
      family,
      source: destination,
      destination: source,
      sourceHardware: hardwareAddress.customer,
      destinationHardware: hardwareAddress.routerInside,
      id: 0,
      transport: { kind: 'udp', sourcePort: 53, destinationPort: 1000 + turn },
      totalLength,
      payload: Uint8Array.of(1),
    }),
  };
}

const turns = Array.from({ length: sources }, (_, turn) => turn);

/** Until every answer has arrived: from then on conntrack calls the flows established. */
function establish(buckets: readonly Bucket[]): void {
  const pairs = buckets.flatMap((each) => turns.map((turn) => openingFrames(each, turn)));
  using attacker = openPacketSocket(path.attacker, { device: device.attacker, receiveBytes: 64 });
  using customer = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 64 });
  const exchange = (from: typeof attacker, at: typeof attacker, frames: readonly Uint8Array[]): void => {
    from.send(new PreparedFrames(frames));
    const deadline = performance.now() + 5000;
    for (let arrived = 0; arrived < frames.length; ) {
      at.receive(() => {
        arrived += 1;
      });
      assert.ok(performance.now() < deadline, `${arrived} of ${frames.length} openings arrived`);
    }
  };
  exchange(
    attacker,
    customer,
    pairs.map((pair) => pair.question),
  );
  exchange(
    customer,
    attacker,
    pairs.map((pair) => pair.answer),
  );
}

/** That a bucket lets pass in a second. */
function passingPackets({ megabits, octets }: Bucket): number {
  return (megabits * 125_000) / octets;
}

function packetsPerSecond(buckets: readonly Bucket[]): number {
  return buckets.reduce((sum, each) => sum + passingPackets(each), 0) * overload;
}

/** Floods all buckets at once, each with `overload` times what it lets pass. */
function flood(buckets: readonly Bucket[], reload: () => void, meanwhile?: () => void): Promise<Measured> {
  const slowest = Math.min(...buckets.map(passingPackets));
  const frames = turns.flatMap((turn) =>
    buckets.flatMap((each) =>
      Array.from({ length: Math.round(passingPackets(each) / slowest) }, () => flowFrame(each, turn)),
    ),
  );
  return measureFlood({
    path,
    frames,
    seconds,
    packetsPerSecond: packetsPerSecond(buckets),
    reload,
    ...(meanwhile && { meanwhile }),
  });
}

/** Passed bytes, less the full bucket at the beginning (one second's worth), against the rate while the flood lasted. */
function assertPassed(buckets: readonly Bucket[], { result, seen }: Measured, say: (text: string) => void): void {
  say(`${(result.packets / result.seconds).toFixed(0)} packets/s offered for ${result.seconds.toFixed(2)} s`);
  const offered = (result.packets / result.seconds / packetsPerSecond(buckets)) * overload;
  assert.ok(offered > 3, `only ${offered.toFixed(1)} times the limits`);
  const ratios = buckets.map(({ family, id, megabits, octets, filter }) => {
    const rate = megabits * 125_000;
    const passed = (seen.forwarded.get(packetKey(family, id)) ?? 0) * octets;
    const ratio = (passed - rate) / (rate * result.seconds);
    say(`${filter.kind.name} IPv${family}, ${megabits} Mbit/s: ${((ratio - 1) * 100).toFixed(2)} %`);
    return ratio;
  });
  for (const [index, ratio] of ratios.entries()) {
    assert.ok(Math.abs(ratio - 1) <= tolerance, `bucket ${index}: ${ratio} of its rate`);
  }
}

function buckets(kind: Filter['kind']): Bucket[] {
  return ([4, 6] as const).flatMap((family) => [bucket(family, 1, 10, 1000, kind), bucket(family, 2, 100, 8000, kind)]);
}

test('10 and 100 Mbit/s pass a filter of ten times as much, over all of its destinations together', {
  skip,
}, async (t) => {
  const all = buckets(dns);
  // One destination of each has a chain of its own, in which the filter stands too; it changes all the time.
  const narrow = (turn: number): Entry[] =>
    all.map(({ filter }, index) => ({
      uuid: `01900000-0000-7000-9000-00000000000${index}`,
      sequence: index,
      priority: 1,
      dst: { ...filter.dst, length: filter.dst.family === 4 ? 32 : 128 },
      protocol: 'tcp',
      action: 'drop',
      sourcePorts: { start: turn, end: turn },
      disabled: false,
    }));
  let compiler = createCompiler();
  const apply = (plan: { text: string; commit(): void }): void => {
    path.router.loadNft(plan.text);
    plan.commit();
  };
  let changes = 0;
  const measured = await flood(
    all,
    () => {
      compiler = createCompiler();
      apply(compiler.replace([...all.map(({ filter }) => filter), ...narrow(0)], mark));
    },
    () => apply(compiler.change({ upsert: narrow(1 + (changes++ % 1000)), remove: [] }, mark)),
  );
  assertPassed(all, measured, (text) => t.diagnostic(text));
  t.diagnostic(`${changes} changes meanwhile`);
  assert.ok(changes >= 10);
});

test('flows that are established already are held to the same limit', { skip }, async (t) => {
  const all = buckets(answeredKind);
  const measured = await flood(all, () => {
    path.router.loadNft(
      createCompiler().replace(
        all.map(({ filter }) => filter),
        mark,
      ).text,
    );
    establish(all);
  });
  assertPassed(all, measured, (text) => t.diagnostic(text));
});
