import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { filterKinds } from './catalogue.ts';
import { filterFields } from './filter.ts';
import { parseFilter } from './parse-filter.ts';

const identity = { uuid: 'u', sequence: 1 };

const usualKinds = filterKinds.filter(({ destinationPorts }) => destinationPorts !== 'none').map(({ id }) => id);
const validFilter = fc.record(
  {
    dst: fc.constantFrom('203.0.113.7', '203.0.113.0/24'),
    filter: fc.constantFrom(...usualKinds),
    priority: fc.integer({ min: 1, max: 2147483647 }),
    src: fc.oneof(
      fc.record({ start: fc.ipV4() }),
      fc.constantFrom({ start: '10.0.0.0/8' }, { start: '10.0.0.1', end: '10.0.9.9' }),
    ),
    port: fc.constantFrom({ dst: { start: 1, end: 9 } }, { src: { start: 0 }, dst: { start: 2 } }),
    ratelimit: fc.integer({ min: 1, max: 25000 }),
  },
  { requiredKeys: ['dst', 'filter', 'port'] },
);

const anyFields = fc.record(
  {
    dst: fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('10.0.0.0/8', '::/0', '1.2.3.4/8', '', 'x'), fc.anything()),
    filter: fc.oneof(fc.integer({ min: -5, max: 35 }), fc.double(), fc.string(), fc.constantFrom('dns', '22', null)),
    priority: fc.oneof(fc.integer(), fc.double(), fc.constantFrom(1, '1', null)),
    src: fc.oneof(fc.record({ start: fc.oneof(fc.ipV4(), fc.ipV6()) }), fc.anything()),
    port: fc.oneof(fc.record({ dst: fc.record({ start: fc.integer() }) }), fc.anything()),
    ratelimit: fc.oneof(fc.integer({ min: -1, max: 25_001 }), fc.double(), fc.anything()),
  },
  { requiredKeys: [] },
);

/** Often a filter, often nearly one. */
const nearlyFilter = fc
  .tuple(validFilter, anyFields, fc.subarray([...filterFields], { maxLength: 2 }))
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
  withSparseArray: true,
  key: fc.oneof(fc.constantFrom(...filterFields, '__proto__', 'constructor', 'start', 'end'), fc.string()),
});

test('anything at all is answered with problems or a filter, never with an exception', () => {
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(hostile, nearlyFilter), (wire) => {
      const parsed = parseFilter(wire, identity);
      if (parsed.ok) return;
      refused += 1;
      assert.ok(parsed.problems.length > 0 && parsed.problems.length < 100);
      for (const { field, code, message } of parsed.problems) {
        assert.match(field, /^(\/([^~/]|~[01])*)*$/s);
        assert.match(code, /^[a-z0-9_]+$/);
        assert.ok(message.length > 0 && message.length < 1000);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these must not get into logs and terminals
        assert.doesNotMatch(message, /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
      }
    }),
    { numRuns: 5000 },
  );
  assert.ok(refused > 500 && refused < 4500, `${refused} refused`);
});

test('what is stored parses to itself and to the same filter, also after a way through JSON', () => {
  let accepted = 0;
  const check = (wire: unknown) => {
    const parsed = parseFilter(wire, identity);
    if (!parsed.ok) return;
    accepted += 1;
    const again = parseFilter(JSON.parse(JSON.stringify(parsed.canonical)), identity);
    assert.ok(again.ok);
    assert.deepEqual(again.filter, parsed.filter);
    assert.equal(JSON.stringify(again.canonical), JSON.stringify(parsed.canonical));
  };
  fc.assert(fc.property(fc.oneof(validFilter, nearlyFilter), check), { numRuns: 3000 });
  assert.ok(accepted > 1000, `only ${accepted} were accepted`);
});

test('the order in which a client writes the fields does not show in what is stored', () => {
  fc.assert(
    fc.property(validFilter, fc.array(fc.nat(), { minLength: 6, maxLength: 6 }), (wire, keys) => {
      const shuffled = Object.entries(wire)
        .map((entry, index) => ({ entry, key: keys[index] ?? 0 }))
        .sort((a, b) => a.key - b.key)
        .map(({ entry }) => entry);
      const [a, b] = [parseFilter(Object.fromEntries(shuffled), identity), parseFilter(wire, identity)];
      assert.ok(a.ok && b.ok);
      assert.equal(JSON.stringify(a.canonical), JSON.stringify(b.canonical));
    }),
    { numRuns: 300 },
  );
});
