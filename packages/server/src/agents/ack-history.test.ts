import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareCursors } from '../store/cursor.ts';
import { AckHistory } from './ack-history.ts';

const cursor = fc.record({ xid: fc.nat(9), position: fc.nat(9) });

test('it answers as a plain search through all acknowledgements would, for rising and falling places', () => {
  fc.assert(
    fc.property(fc.array(cursor, { maxLength: 40 }), cursor, (acknowledged, asked) => {
      const history = new AckHistory();
      let plain: { xid: number; position: number; at: number }[] = [];
      acknowledged.forEach((each, at) => {
        history.add(each, at, 1_000);
        plain = plain.filter((one) => compareCursors(one, each) <= 0);
        if (!plain.some((one) => compareCursors(one, each) === 0)) plain.push({ ...each, at });
      });
      const expected = plain.find((one) => compareCursors(one, asked) >= 0);
      assert.equal(history.covering(asked)?.atMilliseconds, expected?.at);
    }),
  );
});

test('what is no longer kept is answered by a later moment, and marked as not exact', () => {
  const history = new AckHistory();
  for (let xid = 1; xid <= 100; xid++) history.add({ xid, position: 0 }, xid * 10, 20);
  const old = history.covering({ xid: 5, position: 0 });
  assert.equal(old?.exact, false);
  assert.ok((old?.atMilliseconds ?? 0) >= 50);
  assert.deepEqual(history.covering({ xid: 99, position: 0 }), { atMilliseconds: 990, exact: true });
  assert.equal(history.covering({ xid: 100, position: 1 }), undefined);
});
