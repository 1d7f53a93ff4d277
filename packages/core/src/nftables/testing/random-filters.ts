/**
 * Random filters for properties, at the addresses of random-rules.ts: every kind, and the tests' own.
 * Only filters that the parser would let through. Never used outside tests.
 */
import fc from 'fast-check';
import { filterKinds } from '../../filter/catalogue.ts';
import type { Filter } from '../../filter/filter.ts';
import type { FilterKind } from '../../filter/filter-kind.ts';
import {
  arbitraryPorts,
  arbitraryPrefix,
  arbitraryProfileRule,
  arbitraryRange,
  optional,
  present,
  ruleUuid,
} from './random-rules.ts';
import { proxyKind, rememberingKind } from './test-kinds.ts';

const arbitraryKind: fc.Arbitrary<FilterKind> = fc.oneof(
  fc.constantFrom(rememberingKind, proxyKind),
  fc.constantFrom(...filterKinds),
);

/** `uuid` and `sequence` from a small number: the same number again is the same filter changed. */
export function arbitraryFilter(numbers: number): fc.Arbitrary<Filter> {
  return fc
    .record({
      number: fc.nat(numbers - 1),
      dst: arbitraryPrefix,
      kind: arbitraryKind,
      priority: fc.constantFrom(1, 5, 1000, 1000, 2147483647),
      source: optional(fc.boolean()),
      range4: arbitraryRange(2n ** 32n - 1n),
      range6: arbitraryRange(2n ** 128n - 1n),
      sourcePorts: optional(arbitraryPorts),
      destinationPorts: optional(arbitraryPorts),
      rateLimitMegabitsPerSecond: optional(fc.constantFrom(1, 10, 25_000)),
    })
    .map(({ number, kind, source, range4, range6, ...draft }): Filter => {
      const { family } = draft.dst;
      const range = family === 4 ? range4 : range6;
      const ports = kind.destinationPorts !== 'none';
      const needed = kind.destinationPorts === 'required' ? { start: 4000, end: 4000 } : undefined;
      return present<Filter>({
        ...draft,
        uuid: ruleUuid(number),
        sequence: number,
        kind: fits(kind, draft.dst) ? kind : rememberingKind,
        src: source ? { family, ...range } : undefined,
        sourcePorts: ports ? draft.sourcePorts : undefined,
        destinationPorts: ports ? (draft.destinationPorts ?? needed) : undefined,
      });
    });
}

/** Among the destinations and wide prefixes of `arbitraryProfileRule`, and with numbers of its own. */
export function arbitraryProfileFilter(numbers: number): fc.Arbitrary<Filter> {
  return fc.record({ number: fc.nat(numbers - 1), rule: arbitraryProfileRule(numbers) }).map(({ number, rule }) => ({
    uuid: ruleUuid(numbers + number),
    sequence: numbers + number,
    priority: rule.priority,
    dst: rule.dst,
    kind: number % 3 === 0 ? proxyKind : rememberingKind,
  }));
}

function fits({ families, shortestPrefix }: FilterKind, { family, length }: Filter['dst']): boolean {
  return families.includes(family) && length >= (shortestPrefix?.[family] ?? 0);
}
