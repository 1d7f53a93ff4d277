import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalPeer, networkOf } from './peer-address.ts';
import { createResponseLimit } from './response-limit.ts';

const secret = Uint32Array.from([1, 2, 3]);

test('a network gets its rate, a burst of one second, and beyond it hints and silence in turn', () => {
  const limit = createResponseLimit(100, secret);
  const network = networkOf('203.0.113.7');
  let answered = 0;
  const other = { truncate: 0, drop: 0 };
  // 1000 a second for ten seconds.
  for (let now = 0; now < 10_000; now += 1) {
    const verdict = limit.judge(network, now);
    if (verdict === 'answer') answered += 1;
    else other[verdict] += 1;
  }
  assert.ok(Math.abs(answered - 1100) <= 2, String(answered));
  assert.ok(Math.abs(other.truncate - other.drop) <= 1);
  assert.equal(limit.judge(network, 11_000), 'answer');
});

test('addresses of a /24 and of a /56 count as one, those of others on their own', () => {
  const same = [
    ['203.0.113.1', '203.0.113.254'],
    ['::ffff:203.0.113.9', '203.0.113.1'],
    ['2001:db8:1:100::1', '2001:db8:1:1ff:ffff::'],
    ['fe80::1%eth0', 'fe80::2'],
  ] as const;
  for (const [a, b] of same) assert.deepEqual(networkOf(a), networkOf(b), a);
  const apart = [
    '203.0.113.1',
    '203.0.112.1',
    '2001:db8:1:100::',
    '2001:db8:1:200::',
    '2001:db8:2:100::',
    '::1',
    '0.0.0.1',
  ];
  assert.equal(new Set(apart.map((address) => networkOf(address).join())).size, apart.length);
});

test('a hundred networks beside one that floods are hardly ever held to its limit', () => {
  const limit = createResponseLimit(10, secret);
  const flood = networkOf('198.51.100.1');
  for (let now = 0; now < 1000; now += 1) limit.judge(flood, now);
  const refused = Array.from({ length: 100 }, (_, index) => limit.judge(networkOf(`10.0.${index}.1`), 1000)).filter(
    (verdict) => verdict !== 'answer',
  );
  assert.ok(refused.length <= 1, String(refused.length));
});

test('0 is no limit', () => {
  const limit = createResponseLimit(0, secret);
  for (let index = 0; index < 10_000; index += 1) assert.equal(limit.judge([0, 0], 0), 'answer');
});

test('a clock that goes back gives nothing away', () => {
  const limit = createResponseLimit(1, secret);
  assert.equal(limit.judge([0, 1], 5_000), 'answer');
  assert.notEqual(limit.judge([0, 1], 0), 'answer');
  assert.notEqual(limit.judge([0, 1], 5_500), 'answer');
  assert.equal(limit.judge([0, 1], 6_000), 'answer');
});

test('a peer is known by one text, however the socket writes it', () => {
  for (const [given, canonical] of [
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['2001:0db8:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
  ] as const) {
    assert.equal(canonicalPeer(given), canonical);
  }
});
