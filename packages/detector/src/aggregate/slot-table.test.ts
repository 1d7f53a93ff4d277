import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { AGGREGATE_ONLY } from '../bus/port.ts';
import { IPV6_TAG, type SlotColumns, SlotTable } from './slot-table.ts';

function total(column: Float64Array): number {
  return column.reduce((sum, value) => sum + value, 0);
}

function rowsOf({ count, families, addresses, vectors, packets, bytes, samples }: SlotColumns): Map<string, number[]> {
  const rows = new Map<string, number[]>();
  for (let i = 0; i < count; i++) {
    const key = `${families[i]} ${addresses.subarray(i * 4, i * 4 + 4).join('.')} ${vectors[i]}`;
    assert.ok(!rows.has(key), `${key} has one row`);
    rows.set(key, [packets[i] as number, bytes[i] as number, samples[i] as number]);
  }
  return rows;
}

const addition = fc.record({
  address: fc.tuple(fc.nat(5), fc.nat(2), fc.constant(0), fc.nat(3)),
  vector: fc.nat(11),
  isIpv6: fc.boolean(),
  packets: fc.nat(10_000),
});

test('has the sums of each destination and vector, slot by slot, as a map would', () => {
  fc.assert(
    fc.property(fc.array(fc.array(addition, { maxLength: 100 }), { maxLength: 4 }), (slots) => {
      const table = new SlotTable(() => undefined);
      for (const additions of slots) {
        const model = new Map<string, number[]>();
        for (const { address, vector, isIpv6, packets } of additions) {
          const [a, ...rest] = address;
          const [b, c, d] = isIpv6 ? rest : [0, 0, 0];
          table.add(a, b, c, d, vector + (isIpv6 ? IPV6_TAG : 0), packets, packets * 100, 1);
          const key = `${isIpv6 ? 6 : 4} ${[a, b, c, d].join('.')} ${vector}`;
          const sums = model.get(key) ?? [0, 0, 0];
          model.set(key, [(sums[0] ?? 0) + packets, (sums[1] ?? 0) + packets * 100, (sums[2] ?? 0) + 1]);
        }
        assert.deepEqual(new Map([...rowsOf(table.take())].sort()), new Map([...model].sort()));
      }
    }),
  );
});

test('what does not fit counts for its /24 or /64, and nothing is lost as long as those fit', () => {
  const table = new SlotTable(() => undefined, 256, 256);
  for (let i = 0; i < 100_000; i++) {
    table.add(0x20010db8, i % 200, i, i, 10 + IPV6_TAG, 16, 1600, 1);
    table.add(0xcb007100 + (i % 256), 0, 0, 0, 0, 4, 400, 1);
  }
  const columns = table.take();
  assert.equal(total(columns.packets), 100_000 * 20);
  assert.equal(total(columns.bytes), 100_000 * 2000);
  assert.equal(total(columns.samples), 200_000);
  assert.equal(table.lostSamples, 0);
  assert.ok(columns.count <= 512);
  for (const [key] of rowsOf(columns)) {
    if (key.startsWith(`${AGGREGATE_ONLY + 4} `)) assert.equal(key, `${AGGREGATE_ONLY + 4} ${0xcb007100}.0.0.0 0`);
    if (key.startsWith(`${AGGREGATE_ONLY + 6} `)) assert.match(key, /^70 \d+\.\d+\.0\.0 10$/);
  }
});

test('an attacked address stays visible by itself in the middle of a scan over all of IPv6', () => {
  const table = new SlotTable(() => undefined, 1024, 256);
  for (let i = 0; i < 200_000; i++) {
    table.add(0x20010db8, i, i * 7, i * 13, 10 + IPV6_TAG, 1, 100, 1);
    // It begins when the table has long been full.
    if (i > 100_000 && i % 20 === 0) table.add(0x20010db8, 1, 2, 3, 1 + IPV6_TAG, 1, 100, 1);
  }
  const columns = table.take();
  const found = rowsOf(columns).get(`6 ${[0x20010db8, 1, 2, 3].join('.')} 1`);
  assert.ok(found !== undefined && (found[2] ?? 0) > 4_500, `${found?.[2]} of 4 999 samples`);
  assert.ok(columns.count <= 1024 + 256);
  assert.equal(total(columns.samples) + table.lostSamples, 204_999);
});

test('a row with a profile is not given up', () => {
  const table = new SlotTable((row) => {
    table.profiles[row] = row === 0 ? 1 : 0;
  }, 256);
  for (let i = 0; i < 10_000; i++) table.add(i, 0, 0, 0, 0, 1, 1, 1);
  assert.equal(table.keys.find(0, 0, 0, 0, 0), 0);
});
