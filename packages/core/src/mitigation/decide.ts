/**
 * Decides what is done about an attack: the fewest flowrules that catch at least nine tenths of each of its vectors, the
 * edge's rules, and what cannot be said where. Pure. Never knows what stands already: that is compared by who writes.
 *
 * No measure leaves the attack's destination, with one exception: when routers have no room for more flowrules, one on the
 * subnet around it may stand in for several attacks' (`Widening`). None discards all traffic but a blackhole, for which the
 * policy has to ask. Never throws: a measure that would be no flowrule or no rule is left out and told as a fault, since the
 * others are needed the more.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { parseStoredRule } from '../firewall/parse.ts';
import type { Rule } from '../firewall/rule.ts';
import { type CanonicalRule, measurePriority } from '../firewall/wire.ts';
import type { CanonicalFlowrule, Flowrule } from '../flowspec/flowrule.ts';
import { parseFlowrule } from '../flowspec/parse-flowrule.ts';
import type { Prefix } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { coverageOf } from './coverage.ts';
import { type EdgeFields, edgeMeasures, vectorsThatMayTrack } from './edge-measures.ts';
import { type FlowCandidate, flowCandidates, type Surroundings } from './flow-candidates.ts';
import { heldByAccept } from './held-by-accept.ts';
import {
  type EdgeMeasure,
  type FlowMeasure,
  type MeasureNote,
  type Measures,
  type Mitigation,
  vectorOfPurpose,
} from './measure.ts';
import { WANTED_COVERAGE } from './profile-shape.ts';
import { allowedBytes, allowedPps, isHardlyUsed, MOST_BYTES, type VectorLimits } from './rate.ts';
import { matchOfFlowrule } from './traffic-match.ts';

export const MOST_FLOWRULES = 8;
/** Octets: what is longer does not come in one piece. */
const LONGEST_WHOLE = 1500;

export interface MitigationPolicy {
  readonly mitigation: Mitigation;
  /** Why it lets no more be done, where that is not its own word. */
  readonly because?: string | undefined;
  readonly overrideAccept: boolean;
  /** The destination may be given up where no route is left. */
  readonly allowBlackhole: boolean;
}

/** A flowrule that stands for another attack, as a wider one may take it in. */
export interface StandingFlowrule {
  readonly uuid: string;
  readonly canonical: CanonicalFlowrule;
}

/** The subnet around the destination that one account holds all of, and what stands inside it for other attacks. */
export interface Widening {
  readonly prefix: Prefix;
  readonly standing: readonly StandingFlowrule[];
}

export interface MitigationCase {
  readonly dst: Prefix;
  /** Of the vectors that are on. */
  readonly profiles: readonly VectorProfile[];
  readonly limitsOf: (vector: string) => VectorLimits;
  readonly policy: MitigationPolicy;
  /** Enabled accept rules whose destination touches the attack's, or the widening's, whoever owns them. */
  readonly accepts: readonly Rule[];
  /** FlowSpec routes that this attack may have. */
  readonly routesLeft: number;
  readonly widening?: Widening | undefined;
}

/** With what is left out on the way. */
interface Deciding extends MitigationCase {
  readonly leaveOut: (vector: string, where: MeasureNote['where'], reason: string | undefined) => undefined;
}

export function decideMeasures(given: MitigationCase): Measures {
  const faults: string[] = [];
  const left: MeasureNote[] = [];
  const attack: Deciding = {
    ...given,
    leaveOut(vector, where, reason = 'it does not parse') {
      faults.push(`a measure against ${vector} is left out: ${reason}`);
      left.push({ vector, where, text: `A measure is left out: ${reason}` });
    },
  };
  const profiles = attack.profiles.toSorted((a, b) => b.pps - a.pps || (a.vector < b.vector ? -1 : 1));
  const { measures, notes } = routesOf(attack, profiles);
  const flowrules = measures.map((measure) => ({ ...measure, ...held(attack, measure) }));
  const matches = flowrules.map(({ canonical }) => matchOfFlowrule(trusted(canonical).flowrule));
  const caught = (profile: VectorProfile): number => {
    const own = matches.filter((_, index) => vectorOfPurpose(flowrules[index]?.purpose ?? '') === profile.vector);
    return Math.max(coverageOf(own, profile, attack.dst), coverageOf(matches, profile, attack.dst));
  };
  const coverage = Object.fromEntries(profiles.map((each) => [each.vector, caught(each)]));
  const edge = edgeOf(attack, profiles);
  return { flowrules, edge: edge.measures, notes: [...notes, ...edge.notes, ...left], faults, coverage };
}

export function announcesRoutes({ mitigation }: Pick<MitigationPolicy, 'mitigation'>): boolean {
  return mitigation === 'flowspec' || mitigation === 'rtbh';
}

interface Routes {
  readonly measures: readonly FlowMeasure[];
  readonly notes: readonly MeasureNote[];
}

/** Those that the budget has room for; where it has none, a wider one, a blackhole, or all of them held. */
function routesOf(attack: Deciding, profiles: readonly VectorProfile[]): Routes {
  const announces = announcesRoutes(attack.policy);
  if (!announces || attack.routesLeft > 0) {
    const room = announces ? Math.min(MOST_FLOWRULES, attack.routesLeft) : MOST_FLOWRULES;
    return { measures: within(attack, profiles, room), notes: [] };
  }
  const wanted = within(attack, profiles, MOST_FLOWRULES);
  const wide = widened(attack, wanted);
  if (wide !== undefined)
    return {
      measures: wide,
      notes: [
        noteOf(
          profiles,
          'flowspec',
          `No route is left of the budget: rules on ${formatPrefix(attack.widening?.prefix ?? attack.dst)} stand in for several attacks.`,
        ),
      ],
    };
  if (attack.policy.allowBlackhole) {
    const canonical = trusted({ dst: formatPrefix(attack.dst), components: {}, action: 'blackhole' }).canonical;
    return {
      measures: [{ purpose: `${profiles[0]?.vector ?? 'total'}:blackhole`, canonical }],
      notes: [
        noteOf(
          profiles,
          'flowspec',
          'No route is left of the budget: the destination is given up, as the policy has it.',
        ),
      ],
    };
  }
  const reason = 'The budget of FlowSpec routes is used up.';
  return {
    measures: wanted.map((each) => ({ ...each, held: { by: 'budget', reason } })),
    notes: [noteOf(profiles, 'flowspec', reason)],
  };
}

function noteOf(profiles: readonly VectorProfile[], where: MeasureNote['where'], text: string): MeasureNote {
  return { vector: profiles[0]?.vector ?? 'total', where, text };
}

/** At most `room` flowrules: the largest vectors each by itself; those that there is no room for by one limit together. */
function within(attack: Deciding, profiles: readonly VectorProfile[], room: number): FlowMeasure[] {
  const single = profiles.length <= room ? profiles : profiles.slice(0, room - 1);
  const together = profiles.slice(single.length);
  const measures: FlowMeasure[] = [];
  for (const [index, profile] of single.entries()) {
    const others = single.length - index - 1 + (together.length > 0 ? 1 : 0);
    measures.push(...chosen(attack, profiles, profile, room - measures.length - others));
  }
  const [first] = together;
  if (first !== undefined) {
    const sum = (of: (each: VectorProfile) => number) => together.reduce((total, each) => total + of(each), 0);
    const all = { ...first, vector: 'total', pps: sum(({ pps }) => pps), bps: sum(({ bps }) => bps) };
    const rest = measureOf(attack, all, { aim: 'rest', components: {}, action: 'rate-limit' });
    if (rest !== undefined) measures.push(rest);
  }
  return unlike(measures);
}

/** Two vectors may ask for the same route. */
function unlike(measures: readonly FlowMeasure[]): FlowMeasure[] {
  const byRoute = new Map<string, FlowMeasure>();
  for (const measure of measures) {
    const key = JSON.stringify(measure.canonical.components);
    const other = byRoute.get(key);
    if (other === undefined || (other.canonical.action === 'rate-limit' && measure.canonical.action === 'discard'))
      byRoute.set(key, measure);
  }
  return [...byRoute.values()];
}

/** The first candidate that fits and catches enough of the vector. */
function chosen(attack: Deciding, all: readonly VectorProfile[], profile: VectorProfile, room: number): FlowMeasure[] {
  const candidates = flowCandidates(profile, surroundingsOf(attack, all, profile)).map((set) =>
    set.map((each) => measureOf(attack, profile, each)).filter((measure) => measure !== undefined),
  );
  const fits = candidates.filter((set) => set.length <= room);
  const enough = fits.find((set) => {
    const matches = set.map(({ canonical }) => matchOfFlowrule(trusted(canonical).flowrule));
    return coverageOf(matches, profile, attack.dst) >= WANTED_COVERAGE - 1e-9;
  });
  // What comes last catches all of its vector with its first rule.
  return [...(enough ?? fits.at(-1) ?? candidates.at(-1)?.slice(0, 1) ?? [])];
}

function surroundingsOf(
  { dst, limitsOf }: MitigationCase,
  all: readonly VectorProfile[],
  profile: VectorProfile,
): Surroundings {
  const { later_fragments, length } = profile;
  // A vector of their own has its own measure.
  const ownVector = all.some(({ vector }) => vector === 'ip-fragment');
  const hasUdpFragments = !ownVector && (later_fragments > 0 || length.max > LONGEST_WHOLE);
  return { family: dst.family, hasUdpFragments, isHardlyUsed: isHardlyUsed(limitsOf(profile.vector)) };
}

/** Undefined: it is none, and left out. */
function measureOf(
  { dst, limitsOf, leaveOut }: Deciding,
  profile: VectorProfile,
  { aim, components, action }: FlowCandidate,
): FlowMeasure | undefined {
  const { vector } = profile;
  const rate = action === 'rate-limit' && { ratelimit: allowedBytes(profile, limitsOf(vector)) };
  const parsed = parseFlowrule({ dst: formatPrefix(dst), components, action, ...rate });
  if (!parsed.ok) return leaveOut(vector, 'flowspec', parsed.problems[0]?.message);
  return { purpose: `${vector}:${aim}`, canonical: parsed.canonical };
}

/** One route less for each that has the same match and action inside the subnet; undefined: not all of them have one. */
function widened({ widening, dst }: MitigationCase, wanted: readonly FlowMeasure[]): FlowMeasure[] | undefined {
  if (widening === undefined || widening.prefix.length >= dst.length || wanted.length === 0) return undefined;
  const wide: FlowMeasure[] = [];
  for (const measure of wanted) {
    const { components, action } = measure.canonical;
    const alike = widening.standing.filter(
      ({ canonical }) =>
        canonical.action === action && JSON.stringify(canonical.components) === JSON.stringify(components),
    );
    if (alike.length === 0) return undefined;
    const rates = [measure.canonical, ...alike.map(({ canonical }) => canonical)].map(({ ratelimit = 0 }) => ratelimit);
    const rate = action === 'rate-limit' && {
      ratelimit: Math.min(
        MOST_BYTES,
        rates.reduce((sum, each) => sum + each, 0),
      ),
    };
    const { canonical } = trusted({ dst: formatPrefix(widening.prefix), components, action, ...rate });
    wide.push({ purpose: measure.purpose, canonical, replaces: alike.map(({ uuid }) => uuid) });
  }
  return wide;
}

const policyReasons: Readonly<Partial<Record<Mitigation, string>>> = {
  observe: 'The policy only observes: nothing is announced.',
  edge: 'The policy stops at the edge: nothing is announced.',
};

/** What keeps a flowrule from being announced, apart from budgets. `released`: the operator said that its policy does not. */
export function holdOf(
  { policy, accepts }: Pick<MitigationCase, 'policy' | 'accepts'>,
  canonical: CanonicalFlowrule,
  { released, overridesAccept }: { readonly released: boolean; readonly overridesAccept: boolean },
): FlowMeasure['held'] {
  const reason = policyReasons[policy.mitigation] && (policy.because ?? policyReasons[policy.mitigation]);
  if (reason !== undefined && !released) return { by: 'policy', reason };
  if (overridesAccept) return undefined;
  return heldByAccept(trusted(canonical).flowrule, accepts);
}

function held(attack: MitigationCase, measure: FlowMeasure): Pick<FlowMeasure, 'held'> {
  if (measure.held !== undefined) return {};
  const { overrideAccept: overridesAccept } = attack.policy;
  const hold = holdOf(attack, measure.canonical, { released: false, overridesAccept });
  return hold === undefined ? {} : { held: hold };
}

function edgeOf(
  attack: Deciding,
  profiles: readonly VectorProfile[],
): { measures: EdgeMeasure[]; notes: MeasureNote[] } {
  const { dst, limitsOf, policy } = attack;
  if (policy.mitigation === 'observe') return { measures: [], notes: [] };
  const mayTrack = profiles.every(({ vector }) => vectorsThatMayTrack.includes(vector));
  const measures = new Map<string, EdgeMeasure>();
  const notes: MeasureNote[] = [];
  for (const profile of profiles) {
    const limits = limitsOf(profile.vector);
    const about = {
      family: dst.family,
      mayTrack,
      isHardlyUsed: isHardlyUsed(limits),
      allowedPps: allowedPps(profile, limits),
    };
    const answer = edgeMeasures(profile, about);
    notes.push(...answer.notes);
    for (const { aim, fields } of answer.measures) {
      const canonical = ruleOf(attack, profile.vector, fields);
      if (canonical === undefined) continue;
      const { descr: _, ...same } = canonical;
      const key = JSON.stringify(same);
      if (!measures.has(key)) measures.set(key, { purpose: `${profile.vector}:${aim}`, canonical });
    }
  }
  return { measures: [...measures.values()], notes };
}

/** Undefined: it is none, and left out. */
function ruleOf({ dst, leaveOut }: Deciding, vector: string, fields: EdgeFields): CanonicalRule | undefined {
  const wire = { ...fields, dst: formatPrefix(dst), priority: measurePriority, descr: `Against ${vector}` };
  const parsed = parseStoredRule(wire, { uuid: '', sequence: 0 });
  return parsed.ok ? parsed.canonical : leaveOut(vector, 'edge', parsed.problems[0]?.message);
}

/** Of what has passed the parser already; throws where it has not. */
function trusted(wire: object): { readonly flowrule: Flowrule; readonly canonical: CanonicalFlowrule } {
  const parsed = parseFlowrule(wire);
  if (!parsed.ok) throw new Error(`a measure is no flowrule: ${parsed.problems[0]?.message}`);
  return parsed;
}
