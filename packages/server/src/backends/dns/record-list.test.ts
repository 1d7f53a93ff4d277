import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RecordList } from './record-list.ts';

/** Few letters, so that keys meet again and begin each other. */
const key = fc
  .array(fc.constantFrom('a.', 'b.', 'ab.', '1.'), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));
const step = fc.tuple(fc.constantFrom('set', 'set', 'delete'), key, fc.string({ maxLength: 3 }));

test('after any sets and deletes it answers what a plain map of the same answers', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.string())), fc.array(step, { maxLength: 80 }), (first, steps) => {
      const list = new RecordList(first, 4);
      const model = new Map(first);
      for (const [kind, name, value] of steps) {
        if (kind === 'set') {
          list.set(name, value);
          model.set(name, value);
        } else assert.equal(list.delete(name), model.delete(name));
        assert.equal(list.size, model.size);
      }
      const all = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
      assert.deepEqual([...list.snapshot()], all);
      for (const name of [...model.keys(), ...steps.map(([, name]) => name), 'a', 'z', '']) {
        assert.equal(list.get(name), model.get(name));
        const begins = all.some(([present]) => present.startsWith(name));
        assert.equal(list.hasBeginning(name), begins, name);
      }
    }),
    { numRuns: 1000 },
  );
});

test('a snapshot shows the moment it was taken, whatever is changed while it is read', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(key, fc.string())),
      fc.array(step, { maxLength: 60 }),
      fc.nat(20),
      (first, steps, at) => {
        const list = new RecordList(first, 4);
        const expected = [...list.snapshot()];
        const seen: (readonly [string, string])[] = [];
        const reading = list.snapshot()[Symbol.iterator]();
        for (let index = 0; index < Math.min(at, expected.length); index += 1) seen.push(reading.next().value);
        for (const [kind, name, value] of steps) {
          if (kind === 'set') list.set(name, value);
          else list.delete(name);
        }
        for (let next = reading.next(); next.done !== true; next = reading.next()) seen.push(next.value);
        assert.deepEqual(seen, expected);
      },
    ),
    { numRuns: 500 },
  );
});
