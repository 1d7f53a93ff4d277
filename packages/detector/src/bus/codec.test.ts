import assert from 'node:assert/strict';
import test from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { Dice } from '../detect/testing/dice.ts';
import { BUS_VERSION, collectorSettings, decode, encode, encodeSlotPart } from './codec.ts';
import type { BusMessage } from './messages.ts';
import { partitionOf } from './partition.ts';
import { AGGREGATE_ONLY, PARTITIONS, type SlotProfile, type SlotReport } from './port.ts';
import { writeSlot } from './slot-codec.ts';

type Other = Exclude<BusMessage, { readonly type: 'slot_part' }>;

function randomSlot(dice: Dice, count: number): SlotReport {
  const whole = (below: number) => Math.floor(dice.next() * below);
  const families = Uint8Array.from(
    { length: count },
    () => (whole(2) === 0 ? 4 : 6) + (whole(4) === 0 ? AGGREGATE_ONLY : 0),
  );
  const addresses = new Uint32Array(count * 4);
  for (let row = 0; row < count; row++) {
    const words = ((families[row] as number) & ~AGGREGATE_ONLY) === 4 ? 1 : 4;
    for (let word = 0; word < words; word++) addresses[row * 4 + word] = whole(2 ** 32);
  }
  const column = () => Float64Array.from({ length: count }, () => dice.next() * 10 ** whole(14));
  const list = (): [number, number][] => Array.from({ length: whole(65) }, () => [whole(2 ** 32), whole(1_000)]);
  const texts = (): [string, number][] => Array.from({ length: whole(65) }, (_, i) => [`2001:db8::${i}`, whole(1_000)]);
  const profiles = Array.from(
    { length: whole(4) },
    (): SlotProfile => ({
      dst: whole(2) === 0 ? `203.0.${whole(256)}.${whole(256)}` : `2001:db8:${(whole(60_000) + 1).toString(16)}::/64`,
      vector: whole(12),
      samples: whole(1_000),
      protocols: list(),
      sourcePorts: list(),
      destinationPorts: list(),
      icmp: list(),
      tcpFlags: list(),
      lengths: list(),
      shortest: whole(1_500),
      longest: whole(65_536),
      laterFragments: whole(1_000),
      sources: texts(),
      distinctSources: whole(100_000),
      entries: texts(),
    }),
  );
  return {
    type: 'slot',
    collector: '7f1c.0',
    sequence: whole(2 ** 31),
    slotMs: 250 * whole(2 ** 40),
    count,
    families,
    addresses,
    vectors: Uint8Array.from({ length: count }, () => whole(12)),
    packets: column(),
    bytes: column(),
    samples: column(),
    profiles,
  };
}

/** One text a row, whatever their order. */
function rowsOf({ count, families, addresses, vectors, packets, bytes, samples }: SlotReport): string[] {
  return Array.from({ length: count }, (_, row) =>
    [
      families[row],
      ...addresses.subarray(row * 4, row * 4 + 4),
      vectors[row],
      packets[row],
      bytes[row],
      samples[row],
    ].join(),
  );
}

test('a slot is told whole by its parts: each row and profile once, with those of its /24 or /64', () => {
  const dice = new Dice(20);
  for (const count of [0, 1, 7, 300, 5_000]) {
    const slot = randomSlot(dice, count);
    const told = [...writeSlot(slot)].map(([partition, octets]) => {
      const decoded = decode(encodeSlotPart(octets));
      assert.ok(decoded.ok && decoded.message.type === 'slot_part');
      assert.equal(decoded.message.partition, partition);
      return decoded.message.report;
    });
    assert.deepEqual(told.flatMap(rowsOf).sort(), rowsOf(slot).sort());
    const byText = (profiles: readonly SlotProfile[]) =>
      profiles.map((each) => JSON.stringify(Object.entries(each).sort())).sort();
    assert.deepEqual(byText(told.flatMap(({ profiles }) => profiles)), byText(slot.profiles));
    for (const { collector, sequence, slotMs } of told)
      assert.deepEqual([collector, sequence, slotMs], [slot.collector, slot.sequence, slot.slotMs]);
  }
});

test('addresses of one aggregate are of one partition, and partitions are of about one size', () => {
  assert.equal(partitionOf(4, 0xcb007107, 0), partitionOf(4, 0xcb0071ff, 0));
  assert.equal(partitionOf(6, 0x20010db8, 5), partitionOf(6, 0x20010db8, 5));
  for (const family of [4, 6]) {
    const counts = new Array<number>(PARTITIONS).fill(0);
    for (let i = 0; i < 64_000; i++) {
      const partition = family === 4 ? partitionOf(4, 0xc0000000 + i * 256, 0) : partitionOf(6, 0x20010db8, i);
      counts[partition] = (counts[partition] as number) + 1;
    }
    assert.ok(Math.min(...counts) > 800 && Math.max(...counts) < 1_200, counts.join());
  }
});

const others: readonly Other[] = [
  { type: 'slot_end', collector: 'a.0', sequence: 7, slotMs: 250, partitions: [0, 3, 63] },
  {
    type: 'status',
    collector: 'a',
    settingsRevision: 4,
    exporters: [
      {
        uuid: 'u',
        source: '192.0.2.1',
        last_seen_ms: 5,
        protocols: ['sflow5'],
        datagrams: 1,
        records: 2,
        datagrams_per_second: 0.1,
        records_per_second: 0.2,
        templates: 0,
        dropped: { truncated: 3 },
        lost: 4,
      },
    ],
    receiveBuffer: { bytes: 1, wanted: 2 },
    kernelDrops: 0,
    overflow: { unknownDatagrams: 1, samples: 2, unspread: 3, unprofiled: 4 },
    listening: ['127.0.0.1:6343'],
    refused: [],
    unsent: 5,
  },
  {
    type: 'samples',
    collector: 'a.0',
    request: 'r',
    held: 2_000,
    packets: Array.from({ length: 200 }, (_, i) => ({
      at_ms: i,
      scale: 16,
      exporter: 'u',
      length: 100,
      header: 'RQAA',
    })),
  },
  {
    type: 'settings',
    settings: collectorSettings({
      type: 'settings',
      revision: 3,
      prefixes: Array.from({ length: 3_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`),
      exporters: [{ uuid: 'u', name: 'edge1', source: '192.0.2.1', sampling: 'auto', interfaces: [1] }],
      policies: [],
      ongoing: [],
    }),
  },
  { type: 'hot', detector: 'd', destinations: ['203.0.113.7', '2001:db8::/64'] },
  { type: 'samples_wanted', request: 'r', dst: '203.0.113.7', sinceMs: -5, most: 10 },
  { type: 'ask' },
  { type: 'member', detector: 'd', ready: true, linked: false },
  {
    type: 'attacks',
    detector: 'd',
    ongoing: [{ id: 'x', dst: '203.0.113.7', vectors: ['tcp-syn'], started_ms: 1, detected_ms: 2 }],
    ended: ['y'],
  },
  { type: 'farewell', name: 'd' },
];

test('every message comes out as it went in', () => {
  for (const message of others) {
    const decoded = decode(encode(message));
    assert.ok(decoded.ok, message.type);
    assert.deepEqual(decoded.message, message);
  }
});

test('whatever is changed in a message, cut off or made up: it is refused or it is a message, and nothing is thrown', () => {
  const dice = new Dice(21);
  const whole = (below: number) => Math.floor(dice.next() * below);
  const parts = [...writeSlot(randomSlot(dice, 400)).values()].map(encodeSlotPart);
  const good = [...parts.slice(0, 8), ...others.map(encode)];
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const octets = (good[round % good.length] as Uint8Array).slice();
    const changed = round % 3 === 0 ? octets.subarray(0, whole(octets.length)) : octets;
    for (let i = whole(4) + (round % 3 === 0 ? 0 : 1); i > 0 && changed.length > 0; i--)
      changed[whole(changed.length)] = whole(256);
    const decoded = decode(changed);
    if (!decoded.ok) refused++;
    else if (decoded.message.type === 'slot_part') {
      const { partition, report } = decoded.message;
      const { count, families, addresses, packets, bytes, samples } = report;
      for (let row = 0; row < count; row++) {
        const family = (families[row] as number) & ~AGGREGATE_ONLY;
        assert.equal(partitionOf(family, addresses[row * 4] as number, addresses[row * 4 + 1] as number), partition);
        for (const column of [packets, bytes, samples])
          assert.ok((column[row] as number) >= 0 && Number.isFinite(column[row]));
      }
    }
  }
  assert.ok(refused > 8_000, `${refused} were refused`);
});

test('a few octets take no more memory than their kind of message may have', () => {
  const bomb = deflateRawSync(Buffer.alloc(65 << 20, 32));
  assert.ok(bomb.length < 100_000);
  for (const type of [2, 4]) {
    const decoded = decode(Buffer.concat([Uint8Array.of(BUS_VERSION, type, 1), bomb]));
    assert.deepEqual(decoded, { ok: false, reason: 'malformed' });
  }
  // Four billion rows.
  const rows = decode(
    Buffer.concat([Uint8Array.of(BUS_VERSION, 0, 0, 1, 65), Buffer.alloc(16), Uint8Array.of(255, 255, 255, 255)]),
  );
  assert.deepEqual(rows, { ok: false, reason: 'malformed' });
});

test('another version is told apart from damage', () => {
  const octets = encode({ type: 'ask' });
  octets[0] = BUS_VERSION + 1;
  assert.deepEqual(decode(octets), { ok: false, reason: 'version' });
  assert.deepEqual(decode(Uint8Array.of(BUS_VERSION, 200)), { ok: false, reason: 'type' });
  assert.deepEqual(decode(new Uint8Array(0)), { ok: false, reason: 'version' });
});
