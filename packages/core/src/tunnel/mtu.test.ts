import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sizesOf } from './mtu.ts';

test('a full packet in its tunnel never exceeds 1500 octets outside', () => {
  const overheads = { GRE: 4 + 4, Geneve: 8 + 8 + 14 };
  for (const type of ['GRE', 'Geneve'] as const) {
    for (const family of [4, 6] as const) {
      const { mtu, mss, mssIpv6 } = sizesOf(type, family);
      const outside = mtu + overheads[type] + (family === 4 ? 20 : 40);
      assert.ok(outside <= 1500 && outside > 1490, `${type} over IPv${family}: ${outside}`);
      assert.deepEqual([mss + 40, mssIpv6 + 60], [mtu, mtu]);
    }
  }
});

test('the sizes are those that were measured on Linux', () => {
  const mtus = (['GRE', 'Geneve'] as const).flatMap((type) => ([4, 6] as const).map((f) => sizesOf(type, f).mtu));
  assert.deepEqual(mtus, [1472, 1448, 1450, 1430]);
});
