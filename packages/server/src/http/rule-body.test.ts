import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocolNames } from '@levee/contract/protocols.ts';
import { firewallRuleCreate } from '@levee/contract/schemas/firewall-rule.ts';
import { parseRule } from '@levee/core/firewall/parse.ts';
import fc from 'fast-check';
import { splitRuleBody } from './rule-body.ts';
import { compileBodyCheck } from './schema-check.ts';

const check = compileBodyCheck(firewallRuleCreate);
const odd = fc.oneof(fc.constantFrom(null, '', 'x', -1, 0, 1.5, 65536, 4294967296, true, [], {}), fc.jsonValue());
const optional = <T>(usual: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    { weight: 5, arbitrary: usual },
    { weight: 1, arbitrary: odd },
  );
const port = fc.record({ start: fc.integer({ min: 0, max: 65535 }) });
const bodies = fc
  .record({
    dst: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('203.0.113.7', '203.0.113.0/24', '2001:db8::1') },
      { weight: 1, arbitrary: odd },
    ),
    protocol: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...protocolNames) }, { weight: 1, arbitrary: odd }),
    action: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('accept', 'drop', 'reject', 'continue') },
      { weight: 1, arbitrary: odd },
    ),
    priority: optional(fc.integer({ min: 1, max: 2147483647 })),
    descr: optional(fc.string({ maxLength: 300 })),
    src: optional(fc.constant({ start: '192.0.2.1' })),
    port: optional(fc.record({ src: port, dst: port }, { requiredKeys: [] })),
    disabled: optional(fc.boolean()),
    tcpflags: optional(fc.constantFrom(['syn'], ['syn', 'ack'], ['foo'])),
    ratelimit: optional(fc.integer({ min: 0, max: 4294967295 })),
    packetlength: optional(fc.integer({ min: 1, max: 65535 })),
    packettype: optional(fc.constantFrom('host', 'other')),
    statetype: optional(fc.constantFrom('new', 'invalid')),
    surplus: optional(fc.constant(1)),
  })
  .map((body) => JSON.parse(JSON.stringify(body)) as object);

test('what the published schema refuses, the parser refuses too: the document promises nothing false', () => {
  let accepted = 0;
  fc.assert(
    fc.property(bodies, (body) => {
      const parsed = parseRule(body, { uuid: 'u', sequence: 1 });
      if (parsed.ok) {
        accepted++;
        assert.deepEqual(check(body), [], JSON.stringify(body));
        assert.deepEqual(check(parsed.canonical), [], JSON.stringify(parsed.canonical));
      }
    }),
    { numRuns: 3000 },
  );
  assert.ok(accepted > 50, `only ${accepted} bodies were accepted`);
});

test("a change's own fields are taken out and judged; the rest goes to the parser untouched", () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  const split = splitRuleBody({ dst: 'x', expires_at: '2030-01-01T00:00:01Z', confirm_within: 10 }, now);
  assert.deepEqual(split.fields, { dst: 'x' });
  assert.deepEqual(split.problems, []);
  assert.deepEqual(split.meta, { expiresAt: new Date(now + 1000), confirmWithinSeconds: 10 });
  const codes = (body: unknown) => splitRuleBody(body, now).problems.map(({ field, code }) => `${field} ${code}`);
  assert.deepEqual(codes({ expires_at: '2030-01-01T00:00:00Z' }), ['/expires_at in_the_past']);
  assert.deepEqual(codes({ expires_at: 'tomorrow', confirm_within: 9 }), [
    '/expires_at malformed',
    '/confirm_within out_of_bounds',
  ]);
  assert.deepEqual(codes({ expires_at: 5, confirm_within: '60' }), [
    '/expires_at wrong_type',
    '/confirm_within wrong_type',
  ]);
  assert.deepEqual(splitRuleBody([1], now).fields, [1]);
});
