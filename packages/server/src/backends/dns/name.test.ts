import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isName, labelOctets, labelsOf, nameOfTreeKey, readName, skipName, treeKey } from './name.ts';

const label = fc.uint8Array({ minLength: 1, maxLength: 63 });
const wireName = fc
  .array(label, { maxLength: 8 })
  .map((labels) =>
    Buffer.concat([...labels.flatMap((octets) => [Buffer.from([octets.length]), octets]), Buffer.alloc(1)]),
  )
  .filter((octets) => octets.length <= 255);

test('a name read from a message is the text of the same octets, letters in lower case', () => {
  fc.assert(
    fc.property(wireName, (octets) => {
      const read = readName(octets, 0);
      assert.ok(read !== undefined);
      assert.equal(read.end, octets.length);
      assert.equal(skipName(octets, 0), octets.length);
      const text = read.labels.join('.');
      assert.deepEqual(labelsOf(text), read.labels);
      assert.ok(isName(text));
      const written = read.labels.flatMap((part) => {
        const part8 = labelOctets(part) ?? new Uint8Array();
        return [part8.length, ...part8];
      });
      const lower = Array.from(octets.subarray(0, -1), (octet) =>
        octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet,
      );
      // Length octets are below 64, where letters begin.
      assert.equal(Buffer.from(written).toString('hex'), Buffer.from(lower).toString('hex'));
    }),
  );
});

test('the name of a tree key is the name that it was made of', () => {
  fc.assert(
    fc.property(wireName, (octets) => {
      const labels = readName(octets, 0)?.labels ?? [];
      if (labels.length > 0) assert.equal(nameOfTreeKey(treeKey(labels)), labels.join('.'));
    }),
  );
});

test('texts that are no names are told from those that are, at the edges of every length', () => {
  const of = (...lengths: number[]) => lengths.map((length) => 'a'.repeat(length)).join('.');
  const names = [
    '',
    'a',
    of(63),
    of(63, 63, 63, 61),
    '\\000',
    '\\255.b',
    '0/25.2.0.192',
    '_x',
    `${'\\046'.repeat(63)}`,
  ];
  const none = [
    '.',
    'a.',
    '.a',
    'a..b',
    of(64),
    of(63, 63, 63, 62),
    '\\256',
    '\\04',
    '\\',
    'a b',
    'é',
    '\\046'.repeat(64),
  ];
  for (const name of names) assert.ok(isName(name), name);
  for (const name of none) assert.ok(!isName(name), name);
});
