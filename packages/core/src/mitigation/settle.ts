/**
 * Owns what becomes of the measures that stand already when an attack looks otherwise: those that still catch their vector
 * stay as they are, so that routers and peers are not told something new with each report. Three things give way: what
 * discards where the destination may have a use for the traffic after all, what is much wider than it need be, and what is held
 * for a customer whom it need not touch. Pure. Decides no measure itself.
 */
import type { VectorProfile } from '@levee/contract/detector.ts';
import { parseStoredRule } from '../firewall/parse.ts';
import type { CanonicalRule } from '../firewall/wire.ts';
import type { CanonicalFlowrule } from '../flowspec/flowrule.ts';
import { parseFlowrule } from '../flowspec/parse-flowrule.ts';
import type { Prefix } from '../net/prefix.ts';
import { coverageOf } from './coverage.ts';
import { announcesRoutes, holdOf, type MitigationCase, MOST_FLOWRULES } from './decide.ts';
import { type EdgeMeasure, type FlowMeasure, type Measures, vectorOfPurpose } from './measure.ts';
import { WANTED_COVERAGE } from './profile-shape.ts';
import { matchOfFlowrule, matchOfRule, type TrafficMatch } from './traffic-match.ts';
import { MUCH_WIDER, widthOf } from './width.ts';

export interface StandingRoute {
  readonly uuid: string;
  readonly purpose: string;
  readonly canonical: CanonicalFlowrule;
  /** False: a wider one that stands for other attacks too; it counts, and is theirs. */
  readonly isOwn: boolean;
  readonly released: boolean;
  readonly overridesAccept: boolean;
}

export interface StandingRule {
  readonly uuid: string;
  readonly purpose: string;
  readonly canonical: CanonicalRule;
}

export interface Settled {
  readonly flowrules: {
    readonly keep: readonly { readonly uuid: string; readonly held: FlowMeasure['held'] }[];
    readonly make: readonly FlowMeasure[];
    /** uuids */
    readonly remove: readonly string[];
  };
  readonly edge: { readonly make: readonly EdgeMeasure[]; readonly remove: readonly string[] };
}

export function settleMeasures(
  attack: MitigationCase,
  decided: Measures,
  routes: readonly StandingRoute[],
  rules: readonly StandingRule[],
): Settled {
  return { flowrules: settleRoutes(attack, decided, routes), edge: settleRules(attack, decided, rules) };
}

const EPSILON = 1e-9;

function settleRoutes(
  attack: MitigationCase,
  decided: Measures,
  standing: readonly StandingRoute[],
): Settled['flowrules'] {
  const own = standing.filter(({ isOwn }) => isOwn);
  const matches = standing.map(({ canonical }) => matchOfRoute(canonical));
  const caught = (profile: VectorProfile): boolean => {
    const least = ofVector(standing, profile.vector).map(({ canonical }) => matchOfRoute(canonical));
    return [least, matches].some((each) => coverageOf(each, profile, attack.dst) >= WANTED_COVERAGE - EPSILON);
  };
  const vectors = attack.profiles.map(({ vector }) => vector);
  const isTooHard = ({ vector }: VectorProfile): boolean => {
    const next = ofVector(decided.flowrules, vector);
    const discards = ({ canonical }: { readonly canonical: CanonicalFlowrule }) => canonical.action === 'discard';
    return next.length > 0 && !next.some(discards) && ofVector(own, vector).some(discards);
  };
  const isLackingNow = (profile: VectorProfile) =>
    !caught(profile) ||
    isTooHard(profile) ||
    isHeldInVain(attack, profile, decided, own) ||
    isTooWide(attack, profile, decided, own);
  const lacking = new Set(attack.profiles.filter(isLackingNow).map(({ vector }) => vector));
  // What is of no single vector may catch each of those that lack something.
  const isLacking = (purpose: string) => {
    const vector = vectorOfPurpose(purpose);
    return lacking.has(vector) || (lacking.size > 0 && !vectors.includes(vector));
  };
  const staying = own.filter(({ purpose }) => !isLacking(purpose));
  const added = decided.flowrules.filter(({ purpose }) => isLacking(purpose));
  const room = announcesRoutes(attack.policy) ? Math.min(MOST_FLOWRULES, attack.routesLeft) : MOST_FLOWRULES;
  const isUnusual =
    lacking.size > 0 &&
    decided.flowrules.some(({ replaces, canonical }) => replaces !== undefined || canonical.action === 'blackhole');
  const tooMany = new Set([...staying, ...added].map(({ canonical }) => JSON.stringify(canonical))).size > room;
  return difference(attack, own, isUnusual || tooMany ? decided.flowrules : [...staying, ...added]);
}

/** Nothing of the vector is announced, for the sake of a customer; what would be made now is in no customer's way. */
function isHeldInVain(
  attack: MitigationCase,
  { vector }: VectorProfile,
  decided: Measures,
  own: readonly StandingRoute[],
): boolean {
  const now = ofVector(own, vector);
  const next = ofVector(decided.flowrules, vector);
  if (next.length === 0 || next.some(({ held }) => held !== undefined)) return false;
  return now.some((route) => holdOf(attack, route.canonical, route) !== undefined);
}

/** It was made when less was known: what would be made now hits far less besides the attack. */
function isTooWide(
  attack: MitigationCase,
  profile: VectorProfile,
  decided: Measures,
  own: readonly StandingRoute[],
): boolean {
  const matchesOf = (measures: readonly { readonly purpose: string; readonly canonical: CanonicalFlowrule }[]) =>
    ofVector(measures, profile.vector).map(({ canonical }) => matchOfRoute(canonical));
  return isMuchWider(matchesOf(own), matchesOf(decided.flowrules), profile, attack.dst);
}

function isMuchWider(
  now: readonly TrafficMatch[],
  next: readonly TrafficMatch[],
  profile: VectorProfile,
  dst: Prefix,
): boolean {
  if (next.length === 0 || widthOf(now) < MUCH_WIDER * widthOf(next)) return false;
  return coverageOf(next, profile, dst) >= WANTED_COVERAGE - EPSILON;
}

function difference(
  attack: MitigationCase,
  own: readonly StandingRoute[],
  wanted: readonly (FlowMeasure | StandingRoute)[],
): Settled['flowrules'] {
  const standing = new Map(own.map((route) => [JSON.stringify(route.canonical), route]));
  const keep: Settled['flowrules']['keep'][number][] = [];
  const make: FlowMeasure[] = [];
  const kept = new Set<string>();
  for (const measure of wanted) {
    const route = standing.get(JSON.stringify(measure.canonical));
    if (route === undefined) {
      if (!('isOwn' in measure)) make.push(measure);
    } else if (!kept.has(route.uuid)) {
      kept.add(route.uuid);
      const ofBudget = 'held' in measure && measure.held?.by === 'budget' ? measure.held : undefined;
      keep.push({ uuid: route.uuid, held: holdOf(attack, route.canonical, route) ?? ofBudget });
    }
  }
  return { keep, make, remove: own.filter(({ uuid }) => !kept.has(uuid)).map(({ uuid }) => uuid) };
}

function settleRules(attack: MitigationCase, decided: Measures, standing: readonly StandingRule[]): Settled['edge'] {
  const wanted: (EdgeMeasure | StandingRule)[] = [];
  const observes = attack.policy.mitigation === 'observe';
  for (const profile of attack.profiles) {
    const now = ofVector(standing, profile.vector);
    const next = ofVector(decided.edge, profile.vector);
    const matches = (rules: readonly { readonly canonical: CanonicalRule }[]) =>
      rules.map(({ canonical }) => matchOfStored(canonical));
    const share = (rules: readonly { readonly canonical: CanonicalRule }[]) =>
      coverageOf(matches(rules), profile, attack.dst);
    // Where connections may not be looked at any more, what asks for them has to go; the other way round nothing has.
    const isAllowed = (!asksForState(now) || asksForState(next)) && (!onlyDrops(now) || onlyDrops(next));
    const isWide = isMuchWider(matches(now), matches(next), profile, attack.dst);
    const isEnough = isAllowed && !isWide && share(now) >= Math.min(WANTED_COVERAGE, share(next)) - EPSILON;
    wanted.push(...(isEnough && now.length > 0 && !observes ? now : next));
  }
  const seen = new Set(attack.profiles.map(({ vector }) => vector));
  // A vector that is not told of at present may be back in a second.
  if (!observes) wanted.push(...standing.filter(({ purpose }) => !seen.has(vectorOfPurpose(purpose))));
  const texts = new Set(wanted.map(({ canonical }) => textOf(canonical)));
  const standingTexts = new Set(standing.map(({ canonical }) => textOf(canonical)));
  return {
    make: wanted.filter((rule): rule is EdgeMeasure => !('uuid' in rule) && !standingTexts.has(textOf(rule.canonical))),
    remove: standing.filter(({ canonical }) => !texts.has(textOf(canonical))).map(({ uuid }) => uuid),
  };
}

/** Equal for rules that do the same. */
function textOf({ descr: _, ...same }: CanonicalRule): string {
  return JSON.stringify(same);
}

/** Without a limit, and whatever connection it is of. */
function onlyDrops(rules: readonly { readonly canonical: CanonicalRule }[]): boolean {
  return rules.some(({ canonical: { ratelimit, statetype } }) => ratelimit === undefined && statetype === undefined);
}

function asksForState(rules: readonly { readonly canonical: CanonicalRule }[]): boolean {
  return rules.some(({ canonical }) => canonical.statetype !== undefined);
}

function ofVector<T extends { readonly purpose: string }>(measures: readonly T[], vector: string): T[] {
  return measures.filter(({ purpose }) => vectorOfPurpose(purpose) === vector);
}

function matchOfRoute(canonical: CanonicalFlowrule): TrafficMatch {
  const parsed = parseFlowrule(canonical);
  if (!parsed.ok) throw new Error(`a flowrule that stands does not parse: ${parsed.problems[0]?.message}`);
  return matchOfFlowrule(parsed.flowrule);
}

function matchOfStored(canonical: CanonicalRule): TrafficMatch {
  const parsed = parseStoredRule(canonical, { uuid: '', sequence: 0 });
  if (!parsed.ok) throw new Error(`a measure that stands does not parse: ${parsed.problems[0]?.message}`);
  return matchOfRule(parsed.rule);
}
