import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { KeyTable } from './key-table.ts';

const key = fc.tuple(fc.nat(3), fc.nat(2), fc.constant(0), fc.nat(2), fc.nat(3));
const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), key }),
  fc.record({ kind: fc.constant('remove' as const), key }),
  fc.record({ kind: fc.constant('replace' as const), key, other: key }),
  fc.record({ kind: fc.constant('clear' as const) }),
);

test('finds exactly the keys that are in it, whatever was added, removed and replaced before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new KeyTable(64, () => undefined);
      const model = new Map<string, number>();
      for (const each of steps) {
        if (each.kind === 'clear') {
          table.clear();
          model.clear();
          continue;
        }
        const row = table.find(...each.key);
        assert.equal(row, model.get(each.key.join()) ?? -1);
        if (each.kind === 'add' && row < 0) {
          const added = table.add(...each.key);
          if (model.size === 64) assert.equal(added, -1);
          else {
            assert.ok(![...model.values()].includes(added), 'a row belongs to one key');
            model.set(each.key.join(), added);
          }
        } else if (each.kind === 'remove' && row >= 0) {
          table.remove(row);
          model.delete(each.key.join());
        } else if (each.kind === 'replace' && row >= 0 && table.find(...each.other) < 0) {
          table.replace(row, ...each.other);
          model.delete(each.key.join());
          model.set(each.other.join(), row);
        }
        assert.equal(table.size, model.size);
        assert.equal(table.full, model.size === 64);
      }
      for (const [text, row] of model) {
        const [a = 0, b = 0, c = 0, d = 0, tag = 0] = text.split(',').map(Number);
        assert.equal(table.find(a, b, c, d, tag), row);
      }
    }),
  );
});

test('grows with what is added and tells whoever keeps columns', () => {
  const capacities: number[] = [];
  const table = new KeyTable(4096, (capacity) => capacities.push(capacity));
  for (let i = 0; i < 4096; i++) assert.equal(table.add(i, 0, 0, 0, 1), i);
  assert.equal(table.add(4096, 0, 0, 0, 1), -1);
  assert.deepEqual(capacities, [256, 512, 1024, 2048, 4096]);
  for (let i = 0; i < 4096; i++) assert.equal(table.find(i, 0, 0, 0, 1), i);
});
