import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocolNames } from '@levee/contract/protocols.ts';
import fc from 'fast-check';
import { parsePacket } from './explain.ts';
import { parsePatch, parseRule } from './parse.ts';
import { connectionStates, packetTypes, ruleActions, ruleFields, tcpFlagNames } from './wire.ts';

const identity = { uuid: 'u', sequence: 1 };

const address = fc.oneof(fc.ipV4(), fc.ipV6());
const subnet = fc.tuple(address, fc.nat(130)).map(([text, length]) => `${text}/${length}`);
const addressText = fc.oneof(address, subnet, fc.constantFrom('10.0.0.0/8', '2001:db8::/32', '::/0', 'x', ''));
const port = fc.oneof(fc.nat(70_000), fc.constantFrom(-1, 0, 65535, '80', null));
const portRange = fc.oneof(fc.record({ start: port, end: port }, { requiredKeys: [] }), port);
const source = fc.record({ start: addressText, end: addressText }, { requiredKeys: [] });
const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string());

const anyFields = fc.record(
  {
    dst: addressText,
    protocol: fc.oneof(fc.constantFrom(...protocolNames), fc.string()),
    action: fc.oneof(fc.constantFrom(...ruleActions), fc.string()),
    priority: fc.oneof(fc.integer(), fc.double(), fc.constantFrom(1, '1', null)),
    descr: text,
    src: fc.oneof(source, addressText, fc.anything()),
    port: fc.oneof(fc.record({ src: portRange, dst: portRange }, { requiredKeys: [] }), fc.anything()),
    disabled: fc.oneof(fc.boolean(), fc.constantFrom('true', 1, null)),
    tcpflags: fc.oneof(fc.array(fc.constantFrom(...tcpFlagNames), { maxLength: 9 }), fc.anything()),
    ratelimit: fc.oneof(fc.nat(), fc.double(), fc.constantFrom(0, -0, 4294967295, 4294967296, '1')),
    packetlength: fc.oneof(fc.nat(70_000), fc.anything()),
    packettype: fc.oneof(fc.constantFrom(...packetTypes), fc.anything()),
    statetype: fc.oneof(fc.constantFrom(...connectionStates), fc.anything()),
  },
  { requiredKeys: [] },
);

const validRule = fc.record(
  {
    dst: fc.constantFrom('203.0.113.7', '203.0.113.0/24', '0.0.0.0/0'),
    protocol: fc.constantFrom('tcp' as const),
    action: fc.constantFrom(...ruleActions),
    priority: fc.integer({ min: 1, max: 2147483647 }),
    descr: fc.string({ unit: fc.constantFrom('a', 'ß', '🌊', ' ', '"', '\\'), maxLength: 255 }),
    src: fc.oneof(
      fc.record({ start: fc.ipV4() }),
      fc.constantFrom({ start: '10.0.0.0/8' }, { start: '10.0.0.1', end: '10.0.9.9' }),
    ),
    port: fc.constantFrom(
      { src: { start: 1 } },
      { dst: { start: 1, end: 9 } },
      { src: { start: 0 }, dst: { start: 2 } },
    ),
    disabled: fc.boolean(),
    tcpflags: fc.array(fc.constantFrom(...tcpFlagNames), { minLength: 1, maxLength: 8 }),
    ratelimit: fc.nat(),
    packetlength: fc.integer({ min: 1, max: 65535 }),
    packettype: fc.constantFrom(...packetTypes),
    statetype: fc.constantFrom(...connectionStates),
  },
  { requiredKeys: ['dst', 'protocol', 'action'] },
);

/** Often a rule, often nearly one: up to three fields of a valid one are replaced. */
const nearlyRule = fc
  .tuple(validRule, anyFields, fc.subarray([...ruleFields], { maxLength: 3 }))
  .map(([valid, other, replaced]) => ({
    ...valid,
    ...Object.fromEntries(Object.entries(other).filter(([name]) => replaced.some((field) => field === name))),
  }));

const hostile = fc.anything({
  maxDepth: 3,
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  key: fc.oneof(
    fc.constantFrom(...ruleFields, '__proto__', 'constructor', 'toString', 'start', 'end', 'length'),
    fc.string(),
  ),
});

function checkProblems(problems: readonly { field: string; code: string; message: string }[]) {
  assert.ok(problems.length > 0 && problems.length < 100);
  for (const { field, code, message } of problems) {
    assert.match(field, /^(\/([^~/]|~[01])*)*$/s);
    assert.match(code, /^[a-z0-9_]+$/);
    assert.ok(message.length > 0 && message.length < 1000);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these must not get into logs and terminals
    assert.doesNotMatch(message, /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
  }
}

test('anything at all is answered with problems or a rule, never with an exception', () => {
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(hostile, nearlyRule), fc.oneof(hostile, nearlyRule), (wire, patch) => {
      const parsed = parseRule(wire, identity);
      if (!parsed.ok) {
        refused += 1;
        checkProblems(parsed.problems);
        const packet = parsePacket(wire);
        if (!packet.ok) checkProblems(packet.problems);
        return;
      }
      const change = parsePatch(parsed.canonical, patch, identity);
      if (!change.ok) checkProblems(change.problems);
    }),
    { numRuns: 10_000 },
  );
  assert.ok(refused > 1000 && refused < 9000, `${refused} refused`);
});

test('what is stored parses to itself and to the same rule, also after a way through JSON', () => {
  const check = (wire: unknown) => {
    const parsed = parseRule(wire, identity);
    if (!parsed.ok) return false;
    const again = parseRule(JSON.parse(JSON.stringify(parsed.canonical)), identity);
    assert.ok(again.ok);
    assert.deepEqual(again.rule, parsed.rule);
    assert.equal(JSON.stringify(again.canonical), JSON.stringify(parsed.canonical));
    return true;
  };
  fc.assert(
    fc.property(validRule, (wire) => assert.ok(check(wire))),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(nearlyRule, (wire) => void check(wire)),
    { numRuns: 3000 },
  );
});

test('the order in which a client writes the fields does not show in what is stored', () => {
  fc.assert(
    fc.property(validRule, fc.array(fc.nat(), { minLength: 13, maxLength: 13 }), (wire, keys) => {
      const shuffled = Object.entries(wire)
        .map((entry, index) => ({ entry, key: keys[index] ?? 0 }))
        .sort((a, b) => a.key - b.key)
        .map(({ entry }) => entry);
      const [a, b] = [parseRule(Object.fromEntries(shuffled), identity), parseRule(wire, identity)];
      assert.ok(a.ok && b.ok);
      assert.equal(JSON.stringify(a.canonical), JSON.stringify(b.canonical));
      assert.deepEqual(a.rule, b.rule);
    }),
    { numRuns: 500 },
  );
});

test('a patch with all fields of a rule makes that rule, whatever was stored', () => {
  fc.assert(
    fc.property(validRule, validRule, (before, after) => {
      const stored = parseRule(before, identity);
      assert.ok(stored.ok);
      const absent = Object.fromEntries(ruleFields.filter((name) => !(name in after)).map((name) => [name, null]));
      assert.deepEqual(parsePatch(stored.canonical, { ...absent, ...after }, identity), parseRule(after, identity));
    }),
    { numRuns: 1000 },
  );
});
