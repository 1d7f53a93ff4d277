/**
 * Owns what UDP kinds that remember sources share: an opening makes its source known, and what belongs to a session passes
 * from known sources alone. Never looks at a packet: its form is the kind's.
 *
 * Newcomers are bounded for each destination, so that `remembers` has room for all that can have come to one within its
 * time: no flood fills it up and locks out who comes next; it only takes its share of the newcomers' limit (decision 0100).
 */
import type { KindMeter } from './filter-kind.ts';
import type { FilterFinding, FilterView } from './judgement.ts';
import type { KindText } from './kind-text.ts';
import { learningMeter } from './settling-meter.ts';

/** Of each source, in a session. Several players can share an address; 128 packets a second are the most a game sends. */
const session: KindMeter = { name: 'session', of: 'source', packetsPerSecond: 2000, burst: 4000 };
const opening: KindMeter = { name: 'opening', of: 'source', packetsPerSecond: 50, burst: 200 };

/** Sources that may become known at once: players who come back when their server has been away. */
export const newcomersAtOnce = 3000;

/** In the place of `copiesPass`, of kinds that meter newcomers together. */
export const copiedOpenings =
  'It goes by the form of packets. Whoever forges good openings makes forged sources known, as many as the limit on new ones ' +
  'lets through; what those send then is held by the limit on each of them, and by ratelimit.';

/** `opening`, `openings`, `session` and `learned`, to be among the kind's meters. */
export function sessionMeters(newcomersPerSecond: number): KindMeter[] {
  return [
    opening,
    { name: 'openings', of: 'destination', packetsPerSecond: newcomersPerSecond, burst: newcomersAtOnce },
    session,
    learningMeter,
  ];
}

/** `of`: the meter of each source and that of newcomers. */
export function judgeOpening(
  { known }: FilterView,
  why: string,
  of: readonly [string, string] = ['opening', 'openings'],
): FilterFinding {
  return { outcome: 'pass', why, charges: known ? [of[0]] : of, remembers: true };
}

export function judgeSession({ known, settling }: FilterView, what: string): FilterFinding {
  if (known) return { outcome: 'pass', why: `${what} from a known source`, charges: ['session'], remembers: true };
  if (settling) {
    const why = `${what}, perhaps of a session that ran before the filter`;
    return { outcome: 'pass', why, charges: ['session', learningMeter.name], remembers: true };
  }
  return { outcome: 'discard', why: `${what} from a source that has opened nothing` };
}

/** Where openings go. */
export function openingLines(
  { above, discard, known, pass, remember }: KindText,
  of: readonly [string, string] = ['opening', 'openings'],
): string[] {
  return [
    `${above(of[0])} ${discard}`,
    `${known} ${remember} ${pass}`,
    `${above(of[1])} ${discard}`,
    `${remember} ${pass}`,
    pass,
  ];
}

/** Where what belongs to a session goes. */
export function sessionLines({ above, branch, discard, known, pass, remember, settling }: KindText): string[] {
  const excess = `${above('session')} ${discard}`;
  const go = [`${remember} ${pass}`, pass];
  return [
    `${known} ${branch('known', [excess, ...go])}`,
    `${settling} ${branch('learn', [excess, `${above(learningMeter.name)} ${discard}`, ...go])}`,
  ];
}
