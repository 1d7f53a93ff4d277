import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocolNames, protocolNumbers } from './protocols.ts';

test('there are 58 different protocol words, each with an entry in the number table and no other', () => {
  assert.equal(protocolNames.length, 58);
  assert.equal(new Set(protocolNames).size, 58);
  assert.deepEqual(Object.keys(protocolNumbers), [...protocolNames]);
});

test('the interface lists its words by number, so the numbers rise strictly and fit the octet of the header', () => {
  const numbers = protocolNames.map((name) => protocolNumbers[name]).filter((number) => number !== null);
  assert.equal(numbers.length, 55);
  for (const [index, number] of numbers.entries()) {
    assert.ok(Number.isInteger(number) && number >= 0 && number <= 255);
    if (index > 0) assert.ok(number > (numbers[index - 1] ?? Number.NaN), `${number} does not rise`);
  }
});

test('any, ip and mptcp name no protocol number', () => {
  const without = protocolNames.filter((name) => protocolNumbers[name] === null);
  assert.deepEqual(without, ['any', 'ip', 'mptcp']);
});

test('words that are easily taken for one another have the numbers of the registry', () => {
  const facts = { hopopt: 0, ipencap: 4, st: 5, ipip: 94, encap: 98, ipv6: 41, 'ipv6-nonxt': 59, idrp: 45, rdp: 27 };
  for (const [name, number] of Object.entries(facts)) {
    assert.equal(protocolNumbers[name as keyof typeof facts], number, name);
  }
});
