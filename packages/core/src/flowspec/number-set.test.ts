import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { numberKinds } from './flowrule.ts';
import { formatNumberSet, isInSet, mostRanges, type NumberSet, parseNumberSet } from './number-set.ts';

const { protocol, port, dscp } = numberKinds;

function setOf(text: string, kind = port as { maximum: number }): NumberSet {
  const parsed = parseNumberSet(text, kind);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.sentence);
  return parsed.set;
}

const small = fc.integer({ min: 0, max: 63 });
const item = fc
  .tuple(small, small)
  .map(([a, b]) => (a === b ? { start: a, end: a } : { start: Math.min(a, b), end: Math.max(a, b) }));

test('a text means exactly the numbers that its values and ranges name, and the set has one text', () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 12 }), (items) => {
      const text = items.map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`)).join(',');
      const set = setOf(text, dscp);
      for (let number = 0; number < 64; number++) {
        const named = items.some(({ start, end }) => start <= number && number <= end);
        assert.equal(isInSet(set, number), named, `${number} in ${text}`);
      }
      const canonical = formatNumberSet(set, dscp);
      assert.deepEqual(setOf(canonical, dscp), set);
      assert.equal(formatNumberSet(setOf(canonical, dscp), dscp), canonical);
      const reordered = [...items, ...items].reverse();
      const other = reordered.map(({ start, end }) => `${start}-${end}`).join(',');
      assert.equal(formatNumberSet(setOf(other, dscp), dscp), canonical);
    }),
  );
});

test('values and ranges come ascending, joined where they touch, and a range of two is two values', () => {
  const cases: [string, string][] = [
    ['53', '53'],
    ['1024-65535,53', '53,1024-65535'],
    ['80,81', '80,81'],
    ['80-81', '80,81'],
    ['80,81,82', '80-82'],
    ['1-5,3-9,10', '1-10'],
    ['7-7', '7'],
    ['0-65535', '0-65535'],
  ];
  for (const [text, canonical] of cases) assert.equal(formatNumberSet(setOf(text), port), canonical, text);
});

test('a protocol is read by name and number, and written by its name where it has one', () => {
  const cases: [string, string][] = [
    ['17', 'udp'],
    ['udp,tcp', 'tcp,udp'],
    ['ipv6-icmp', 'ipv6-icmp'],
    ['6,gre,255', 'tcp,gre,255'],
    ['icmp,igmp', 'icmp,igmp'],
    ['0-255', '0-255'],
  ];
  for (const [text, canonical] of cases) {
    assert.equal(formatNumberSet(setOf(text, protocol), protocol), canonical, text);
  }
});

test('every number has a text that is read as that number', () => {
  for (let number = 0; number <= 255; number++) {
    const text = formatNumberSet([{ start: number, end: number }], protocol);
    assert.deepEqual(setOf(text, protocol), [{ start: number, end: number }], text);
  }
});

test('what is no set of numbers is refused with what was received', () => {
  const wrong = [
    '',
    ' 53',
    '53 ',
    '053',
    '-1',
    '1-',
    '-',
    '1--2',
    '9-1',
    '65536',
    '1e3',
    '0x35',
    'udp',
    '53,',
    ',53',
    '1;2',
  ];
  for (const text of [...wrong, 'any', 'mptcp', '٣', '1'.repeat(40)]) {
    const parsed = parseNumberSet(text, text === 'any' || text === 'mptcp' ? protocol : port);
    assert.equal(parsed.ok, false, text);
    assert.ok(!parsed.ok && parsed.sentence.length < 250, text);
  }
  const many = Array.from({ length: mostRanges + 1 }, (_, index) => index * 2).join(',');
  assert.equal(parseNumberSet(many, port).ok, false);
  assert.equal(parseNumberSet(many.slice(0, many.lastIndexOf(',')), port).ok, true);
});

test('no text makes it throw', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => void parseNumberSet(text, protocol)));
});
