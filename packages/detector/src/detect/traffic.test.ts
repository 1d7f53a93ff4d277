import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TOTAL } from '@levee/core/detection/vector.ts';
import { Places, prefixAt } from './places.ts';
import { Dice } from './testing/dice.ts';
import { defaultLimits, Traffic, type TrafficLimits, tagOf, WindowSums } from './traffic.ts';

function trafficOf(prefixes: readonly string[], limits: TrafficLimits = defaultLimits): Traffic {
  const places = new Places();
  places.take({ type: 'settings', revision: 1, prefixes: [...prefixes], policies: [], exporters: [], ongoing: [] });
  const traffic: Traffic = new Traffic(limits, (row): boolean => places.place(traffic, row));
  return traffic;
}

const base = 0xcb007100;
const v4 = tagOf(4, 32);
const v6 = tagOf(6, 128);

/** What each amount was, of which key and slot: the plainest bookkeeping that there is. */
class Ledger {
  readonly #entries: {
    readonly key: string;
    readonly slot: number;
    readonly packets: number;
    readonly bytes: number;
  }[] = [];

  add(dst: number, vector: number, slot: number, packets: number, bytes: number): void {
    for (const row of [`a${dst}`, `s${dst >>> 8}`]) {
      for (const each of [vector, TOTAL]) this.#entries.push({ key: `${row} ${each}`, slot, packets, bytes });
    }
  }

  sum(key: string, last: number): { packets: number; bytes: number } {
    const sum = { packets: 0, bytes: 0 };
    for (const each of this.#entries) {
      if (each.key !== key || each.slot <= last - 4 || each.slot > last) continue;
      sum.packets += each.packets;
      sum.bytes += each.bytes;
    }
    return sum;
  }

  keys(last: number): Set<string> {
    return new Set(this.#entries.filter(({ slot }) => slot > last - 4).map(({ key }) => key));
  }
}

test('each window holds what the plainest bookkeeping says, of addresses and subnets, also of what comes late', () => {
  for (let seed = 1; seed <= 25; seed++) {
    const dice = new Dice(seed);
    const traffic = trafficOf(['203.0.113.0/24', '203.0.114.0/24']);
    const ledger = new Ledger();
    const sums = new WindowSums();
    for (let slot = 1; slot < 60; slot += dice.next() < 0.1 ? 1 + dice.below(9) : 1) {
      traffic.begin(slot);
      for (let count = dice.below(12); count > 0; count--) {
        const dst = base + (dice.below(2) << 8) + dice.below(5);
        const [vector, back, packets] = [dice.below(12), dice.next() < 0.2 ? dice.below(4) : 0, dice.below(1000)];
        traffic.add(dst, 0, 0, 0, v4, vector, packets, packets * 64, packets, slot - back);
        ledger.add(dst, vector, slot - back, packets, packets * 64);
      }
      for (const key of ledger.keys(slot)) {
        const [row = '', vector = ''] = key.split(' ');
        const number = Number(row.slice(1));
        const found = row.startsWith('a')
          ? traffic.find(number, 0, 0, 0, v4)
          : traffic.find((number << 8) >>> 0, 0, 0, 0, tagOf(4, 24));
        traffic.align(found);
        traffic.sum(traffic.keyOf(found, Number(vector)), sums);
        const { packets, bytes } = sums;
        assert.deepEqual({ packets, bytes }, ledger.sum(key, slot), `seed ${seed}, slot ${slot}, ${key}`);
      }
    }
  }
});

test('what nobody sends to any more is let go, subnets included, and what is pinned is not', () => {
  const traffic = trafficOf(['203.0.113.0/24']);
  traffic.begin(1);
  for (let host = 0; host < 200; host++) traffic.add(base + host, 0, 0, 0, v4, 1, 10, 600, 10, 1);
  assert.equal(traffic.table.size, 201);
  const pinned = traffic.find(base + 7, 0, 0, 0, v4);
  traffic.pin(pinned);
  for (let slot = 2; slot < 40; slot++) traffic.begin(slot);
  assert.equal(traffic.table.size, 2);
  assert.equal(prefixAt(traffic, pinned).value, BigInt(base + 7));
  traffic.unpin(pinned);
  for (let slot = 40; slot < 80; slot++) traffic.begin(slot);
  assert.equal(traffic.table.size, 0);
});

test('what an attack has of its own is taken from the subnet, once', () => {
  const traffic = trafficOf(['203.0.113.0/24']);
  const sums = new WindowSums();
  for (let slot = 1; slot <= 6; slot++) {
    traffic.begin(slot);
    traffic.add(base + 1, 0, 0, 0, v4, 10, 1000, 64_000, 1000, slot);
    traffic.add(base + 2, 0, 0, 0, v4, 10, 5, 320, 5, slot);
  }
  const attacked = traffic.find(base + 1, 0, 0, 0, v4);
  const subnet = traffic.find(base, 0, 0, 0, tagOf(4, 24));
  traffic.takeFromAggregate(attacked);
  traffic.attacks[attacked] = 0;
  assert.equal(traffic.sum(traffic.keyOf(subnet, 10), sums).packets, 20);
  traffic.begin(7);
  traffic.add(base + 1, 0, 0, 0, v4, 10, 1000, 64_000, 1000, 7);
  traffic.align(subnet);
  assert.equal(traffic.sum(traffic.keyOf(subnet, 10), sums).packets, 15);
  assert.equal(traffic.sum(traffic.keyOf(subnet, TOTAL), sums).packets, 15);
});

test('a scan of five million IPv6 addresses takes no more memory than the bound, and hides no attack', () => {
  const limits = { destinations: 1 << 14, keys: 1 << 16 };
  const traffic = trafficOf(['2001:db8::/32'], limits);
  const dice = new Dice(6);
  const sums = new WindowSums();
  const slots = 50;
  let most = 0;
  for (let slot = 1; slot <= slots; slot++) {
    traffic.begin(slot);
    // The victim comes last in each slot: everything is full by then.
    for (let count = 0; count < 5_000_000 / slots; count++) {
      const word = () => dice.below(0xffffffff);
      traffic.add(0x20010db8, word(), word(), word(), v6, 1, 1000, 60_000, 1, slot);
    }
    if (slot > slots - 4) traffic.add(0x20010db8, 1, 2, 3, v6, 1, 5000, 300_000, 5, slot);
    most = Math.max(most, traffic.table.size);
  }
  assert.ok(most <= limits.destinations, `${most}`);
  assert.ok(traffic.octets < 12e6, `${traffic.octets}`);
  assert.ok(traffic.untracked > 4_000_000);
  const victim = traffic.find(0x20010db8, 1, 2, 3, v6);
  assert.ok(victim >= 0);
  assert.equal(traffic.sum(traffic.keyOf(victim, 1), sums).samples, 20);
  for (let slot = slots + 1; slot < slots + 20; slot++) traffic.begin(slot);
  assert.equal(traffic.table.size, 0);
});

test('a slot costs what it touches, however much is held', () => {
  const cost = (held: number) => {
    const traffic = trafficOf(['10.0.0.0/8']);
    traffic.begin(1);
    for (let host = 0; host < held; host++) {
      traffic.add(0x0a000000 + host * 16, 0, 0, 0, v4, 1, 10, 600, 10, 1);
      traffic.pin(traffic.find(0x0a000000 + host * 16, 0, 0, 0, v4));
    }
    let touched = 0;
    for (let slot = 2; slot < 40; slot++) {
      traffic.begin(slot);
      for (let host = 0; host < 100; host++) traffic.add(0x0b000000 - 4096 + host, 0, 0, 0, v4, 1, 10, 600, 10, slot);
      if (slot > 10) touched += traffic.touched.length;
    }
    return touched;
  };
  assert.equal(cost(100), cost(100_000));
});
