import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Share, VectorProfile } from '@levee/contract/detector.ts';
import fc from 'fast-check';
import { vectors } from '../detection/vector.ts';
import { evaluate } from '../firewall/evaluate.ts';
import { parseRule, parseStoredRule } from '../firewall/parse.ts';
import type { Rule } from '../firewall/rule.ts';
import { parseFlowrule } from '../flowspec/parse-flowrule.ts';
import { prefixContains } from '../net/prefix.ts';
import { prefixFromTrusted } from '../net/prefix-text.ts';
import { decideMeasures, MOST_FLOWRULES } from './decide.ts';
import { mitigations, vectorOfPurpose } from './measure.ts';
import { mayOverlap } from './overlap.ts';
import { profileOf } from './testing/profile.ts';
import { matchOfFlowrule, matchOfRule } from './traffic-match.ts';

/** Shares that sum up to at most one, the highest first. */
function sharesOf<T>(value: fc.Arbitrary<T>): fc.Arbitrary<Share<T>[]> {
  return fc.uniqueArray(value, { maxLength: 12 }).chain((values) =>
    fc
      .array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: values.length, maxLength: values.length })
      .map((weights) => {
        const total = weights.reduce((sum, each) => sum + each, 0);
        return values
          .map((each, index) => ({ value: each, share: (weights[index] ?? 0) / total }))
          .sort((a, b) => b.share - a.share);
      }),
  );
}

const arbitraryProfile = (vector: string, family: 4 | 6): fc.Arbitrary<VectorProfile> =>
  fc
    .record({
      pps: fc.integer({ min: 100, max: 50_000_000 }),
      octets: fc.integer({ min: 40, max: 1500 }),
      samples: fc.integer({ min: 0, max: 5000 }),
      source_ports: sharesOf(fc.constantFrom(19, 53, 123, 389, 1900, 11211, 4444)),
      destination_ports: sharesOf(fc.integer({ min: 0, max: 65535 })),
      protocols: sharesOf(fc.integer({ min: 0, max: 255 })),
      icmp: sharesOf(fc.integer({ min: 0, max: 65535 })),
      tcp_flags: sharesOf(fc.integer({ min: 0, max: 255 })),
      lengths: fc.tuple(
        fc.integer({ min: 20, max: 9000 }),
        fc.integer({ min: 0, max: 2000 }),
        fc.integer({ min: 0, max: 3000 }),
      ),
      later_fragments: fc.double({ min: 0, max: 1, noNaN: true }),
      sources: sharesOf(
        fc
          .integer({ min: 1, max: 254 })
          .map((last) => (family === 4 ? `198.51.100.${last}` : `2001:db8:9::${last.toString(16)}`)),
      ),
      distinct_sources: fc.integer({ min: 0, max: 5000 }),
    })
    .map(({ octets, lengths: [min, more, rest], ...given }) =>
      profileOf(vector, {
        ...given,
        bps: given.pps * octets * 8,
        length: { min, p5: min + more, max: min + more + rest },
      }),
    );

const arbitraryCase = fc
  .record({
    family: fc.constantFrom<4 | 6>(4, 6),
    isSubnet: fc.boolean(),
    names: fc.uniqueArray(fc.constantFrom(...vectors), { minLength: 1, maxLength: 10 }),
    mitigation: fc.constantFrom(...mitigations),
    overrideAccept: fc.boolean(),
    routesLeft: fc.constantFrom(0, 1, 3, 8, 1000),
    pps: fc.integer({ min: 100, max: 1_000_000 }),
    baselinePps: fc.option(fc.integer({ min: 0, max: 100_000 }), { nil: undefined }),
    accepting: fc.constantFrom<object | undefined>(
      undefined,
      { protocol: 'tcp' },
      { protocol: 'udp', port: { src: { start: 53 } } },
      { protocol: 'any' },
    ),
  })
  .chain((drawn) =>
    fc
      .tuple(...drawn.names.map((name) => arbitraryProfile(name, drawn.family)))
      .map((profiles) => ({ ...drawn, profiles })),
  );

const dstOf = (family: 4 | 6, isSubnet: boolean) =>
  family === 4 ? (isSubnet ? '203.0.113.0/24' : '203.0.113.7') : isSubnet ? '2001:db8::/64' : '2001:db8::7';

test('measures stay on the destination, are few, catch their vectors, and never discard SYNs, everything, or what is accepted', () => {
  fc.assert(
    fc.property(
      arbitraryCase,
      ({ family, isSubnet, profiles, mitigation, overrideAccept, routesLeft, pps, baselinePps, accepting }) => {
        const dst = prefixFromTrusted(dstOf(family, isSubnet));
        const accepts: Rule[] = [];
        if (accepting !== undefined) {
          const parsed = parseRule(
            { dst: dstOf(family, isSubnet), action: 'accept', ...accepting },
            { uuid: 'accepting', sequence: 1 },
          );
          if (parsed.ok) accepts.push(parsed.rule);
        }
        const policy = { mitigation, overrideAccept, allowBlackhole: mitigation === 'rtbh' };
        const measures = decideMeasures({
          dst,
          profiles,
          limitsOf: () => ({ pps, baselinePps }),
          policy,
          accepts,
          routesLeft,
        });
        const announces = mitigation === 'flowspec' || mitigation === 'rtbh';
        assert.ok(measures.flowrules.length >= 1 && measures.flowrules.length <= MOST_FLOWRULES);
        if (announces && routesLeft > 0) assert.ok(measures.flowrules.length <= routesLeft);
        assert.equal(
          new Set(measures.flowrules.map(({ canonical }) => JSON.stringify(canonical.components))).size,
          measures.flowrules.length,
        );
        for (const { canonical, held, purpose } of measures.flowrules) {
          const parsed = parseFlowrule(canonical);
          assert.ok(parsed.ok);
          assert.deepEqual(parsed.canonical, canonical);
          assert.ok(prefixContains(dst, parsed.flowrule.dst));
          assert.notEqual(vectorOfPurpose(purpose), '');
          const { action, components } = canonical;
          assert.equal(components['source-prefix'], undefined);
          if (action === 'blackhole') assert.equal(mitigation, 'rtbh');
          if (action === 'discard') {
            assert.ok(Object.keys(components).length > 0, 'discards everything');
            assert.notEqual(vectorOfPurpose(purpose), 'tcp-syn');
          }
          if (!announces) assert.equal(held?.by, 'policy');
          else if (!overrideAccept && held === undefined) {
            for (const rule of accepts)
              assert.equal(mayOverlap(matchOfFlowrule(parsed.flowrule), matchOfRule(rule)), false);
          }
        }
        if (!announces || routesLeft > 0) {
          for (const { vector } of profiles)
            assert.ok((measures.coverage[vector] ?? 0) >= 0.9 - 1e-9, `${vector}: ${measures.coverage[vector]}`);
        } else {
          assert.ok(
            measures.notes.some(({ where }) => where === 'flowspec'),
            'it is not said why',
          );
        }
        if (mitigation === 'observe') assert.deepEqual(measures.edge, []);
        const entries: Rule[] = [...accepts];
        for (const [index, { canonical }] of measures.edge.entries()) {
          const parsed = parseStoredRule(canonical, { uuid: `measure ${index}`, sequence: 0 });
          assert.ok(parsed.ok);
          assert.deepEqual(parsed.canonical, canonical);
          assert.ok(prefixContains(dst, parsed.rule.dst));
          entries.push(parsed.rule);
          // A SYN alone is dropped by no measure but a limit.
          const { ratelimit, src, tcpflags, protocol, statetype } = canonical;
          assert.equal(src, undefined);
          if (ratelimit === undefined && protocol === 'tcp') {
            assert.ok((tcpflags !== undefined && tcpflags.join() !== 'syn') || statetype === 'invalid');
          }
        }
        for (const rule of accepts) {
          const packet = {
            family,
            source: rule.src?.start ?? 1n,
            destination: dst.value,
            upperProtocol: rule.protocol === 'tcp' ? 6 : 17,
            extensionHeaders: [],
            sourcePort: 53,
            destinationPort: 443,
            tcpFlags: 2,
            totalLengthBytes: 60,
            packetType: 'host',
            connectionState: 'new',
          } as const;
          assert.equal(evaluate(entries, packet, { withinLimit: () => false }).verdict, 'accept');
        }
      },
    ),
    { numRuns: 1500 },
  );
});

/** Whatever a detector may say of a packet's length or of a rate, and more: nothing here relies on who checked it. */
const wildProfile = (vector: string): fc.Arbitrary<VectorProfile> => {
  const number = (...values: number[]) => fc.oneof(fc.constantFrom(...values), fc.integer({ min: 0, max: 65_575 }));
  const shares = <T>(value: fc.Arbitrary<T>) =>
    fc.array(fc.record({ value, share: fc.double({ min: 0, max: 1, noNaN: true }) }), { maxLength: 12 });
  const octets = shares(fc.integer({ min: 0, max: 255 }));
  const words = shares(number(0, 53, 123, 65_535).map((each) => Math.min(each, 65_535)));
  const rate = fc.constantFrom(0, 0.001, 1, 1e5, 1e15);
  return fc
    .record({
      pps: rate,
      bps: rate,
      samples: fc.constantFrom(0, 1, 50, Number.MAX_SAFE_INTEGER),
      protocols: octets,
      source_ports: words,
      destination_ports: words,
      icmp: words,
      tcp_flags: octets,
      length: fc.record({
        min: number(0, 20, 65_535, 65_575),
        p5: number(0, 1200, 65_535, 65_575),
        max: number(0, 84, 65_535, 65_575),
      }),
      later_fragments: fc.constantFrom(0, 0.5, 0.95, 1),
    })
    .map((given) => profileOf(vector, given));
};

test('whatever a detector tells, something is decided: what would be no measure is left out and told, and the rest stands', () => {
  const wildCase = fc
    .record({
      names: fc.uniqueArray(fc.constantFrom(...vectors), { minLength: 1, maxLength: 5 }),
      isSubnet: fc.boolean(),
      family: fc.constantFrom<4 | 6>(4, 6),
      mitigation: fc.constantFrom(...mitigations),
      routesLeft: fc.constantFrom(0, 1, 1000),
      limits: fc.record({
        pps: fc.constantFrom(undefined, 100, 1e9),
        bps: fc.constantFrom(undefined, 1e5, 1e13),
        baselinePps: fc.constantFrom(undefined, 0, 1, 1e15),
        baselineBps: fc.constantFrom(undefined, 0, 1, 1e15),
      }),
    })
    .chain((drawn) => fc.tuple(...drawn.names.map(wildProfile)).map((profiles) => ({ ...drawn, profiles })));
  fc.assert(
    fc.property(wildCase, ({ profiles, isSubnet, family, mitigation, routesLeft, limits }) => {
      const measures = decideMeasures({
        dst: prefixFromTrusted(dstOf(family, isSubnet)),
        profiles,
        limitsOf: () => limits,
        policy: { mitigation, overrideAccept: false, allowBlackhole: false },
        accepts: [],
        routesLeft,
      });
      assert.ok(measures.flowrules.length > 0);
      for (const { canonical } of measures.flowrules) assert.ok(parseFlowrule(canonical).ok);
      for (const { canonical } of measures.edge) assert.ok(parseStoredRule(canonical, { uuid: '', sequence: 0 }).ok);
      assert.equal(
        measures.faults.length > 0,
        measures.notes.some(({ text }) => text.startsWith('A measure is left out')),
      );
    }),
    { numRuns: 2000 },
  );
});
