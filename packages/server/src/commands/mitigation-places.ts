/**
 * Decides about an attack by what the database knows of its destination: the policies in force, who holds what of it, what
 * customers accept, what stands. Owns how these become core's cases; what measures there are is core's mitigation/ to know.
 * Writes nothing.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { effectivePolicy } from '@levee/core/detection/policy.ts';
import { type Vector, vectorNumber, vectors } from '@levee/core/detection/vector.ts';
import {
  announcesRoutes,
  decideMeasures,
  type MitigationCase,
  type MitigationPolicy,
  MOST_FLOWRULES,
  type Widening,
} from '@levee/core/mitigation/decide.ts';
import { type MeasureNote, type Measures, type Mitigation, mitigations } from '@levee/core/mitigation/measure.ts';
import {
  areEnough,
  attackedAddresses,
  isBelow,
  limitsTogether,
  MOST_ADDRESSES,
  narrowestPart,
  type Part,
  profilesAt,
} from '@levee/core/mitigation/places.ts';
import type { VectorLimits } from '@levee/core/mitigation/rate.ts';
import { type Settled, settleMeasures } from '@levee/core/mitigation/settle.ts';
import { familyBits, type Prefix, prefixContains, prefixOf } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { readAcceptingRules } from '../store/accepting-rules.ts';
import type { AttackRow } from './attack-row.ts';
import { type PolicyInForce, policiesInForce } from './detection-policy.ts';
import type { Executor } from './executor.ts';
import { loadInside, type OwnersPlace, type StandingMeasures } from './standing-measures.ts';
import { loadParts, policyOf, policyOfWhole, settingsOf, weakestPolicy } from './weakest-policy.ts';

/** What is known of an attack besides its row; `threshold` tells what is usual where the profile does not. */
export type ToldAttack = Pick<DetectedAttack, 'phase' | 'profile'> & Partial<Pick<DetectedAttack, 'threshold'>>;

/** Of the subnet that flowrules are widened to. */
export const widestLengths = { 4: 24, 6: 48 } as const;
/** Of all attacked addresses of a subnet together. */
const MOST_EDGE_RULES = 64;
/** What addresses that have measures of their own have of the attack while they keep them. */
const STILL_ENOUGH = 0.5;

export interface MitigationGround {
  readonly attack: AttackRow;
  readonly told: ToldAttack;
  /** Of the whole destination, the narrowest first. */
  readonly policies: readonly PolicyInForce[];
  readonly standing: StandingMeasures;
  readonly owners: OwnersPlace | undefined;
  /** FlowSpec routes that this attack may have. */
  readonly routesLeft: number;
  readonly isWaived: (kind: 'firewall_rule' | 'flowrule', purpose: string) => boolean;
}

export interface PlacedMeasures {
  readonly settled: Settled;
  readonly overridesAccept: boolean;
}

export interface Decision {
  readonly placed: readonly PlacedMeasures[];
  readonly notes: readonly MeasureNote[];
  readonly faults: readonly string[];
  /** The most that any of the policies lets be done. */
  readonly allowed: Mitigation;
  readonly judgedXid: string;
}

export async function decideOn(executor: Executor, ground: MitigationGround): Promise<Decision> {
  const remove = await findTooWide(executor, ground);
  if (remove.length === 0) return decidePlaces(executor, ground);
  const routes = ground.standing.routes.filter(({ uuid }) => !remove.includes(uuid));
  const decision = await decidePlaces(executor, { ...ground, standing: { ...ground.standing, routes } });
  const settled: Settled = { flowrules: { keep: [], make: [], remove }, edge: { make: [], remove: [] } };
  return { ...decision, placed: [...decision.placed, { settled, overridesAccept: false }] };
}

async function decidePlaces(executor: Executor, ground: MitigationGround): Promise<Decision> {
  const { attack, told, policies, routesLeft } = ground;
  const dst = prefixFromTrusted(attack.dst);
  const policy = policyOf(settingsOf(policies));
  const widening =
    announcesRoutes(policy) && routesLeft === 0 ? await findWidening(executor, ground, dst, policy) : undefined;
  const destinations = [attack.dst, ...(widening === undefined ? [] : [formatPrefix(widening.prefix)])];
  const { rules: accepts, judgedXid } = await readAcceptingRules(executor.client, destinations);
  const profiles = told.profile;
  const common = { accepts, routesLeft };
  const single = { ...common, dst, profiles, limitsOf: limitsOf(policies, dst, told), policy, widening };
  if (dst.length === familyBits(dst.family)) return settleAll(ground, [single], judgedXid, []);

  const whole = { ...single, policy: policyOfWhole(policies, attack.dst) };
  const parts = await loadParts(executor, attack.dst);
  const known = knownAddresses(ground.standing, dst);
  const addresses = attackedAddresses(profiles, known);
  const isOnFew = areEnough(addresses.slice(0, MOST_ADDRESSES), profiles, known.length > 0 ? STILL_ENOUGH : undefined);
  const { held, notes } = holdWhole(ground, whole, parts, isOnFew, policy.allowBlackhole);
  // Blackholes and what is held are none of the budget's.
  const most = routesLeft === 0 ? MOST_ADDRESSES : Math.min(MOST_FLOWRULES, routesLeft);
  const room = announcesRoutes(held) ? 0 : most;
  const own = addresses.filter((address) => isBelow(held, policyAt(address, policy, parts))).slice(0, room);
  const cases: MitigationCase[] = [{ ...whole, policy: held }];
  for (const address of own) {
    const inForce = await policiesInForce(executor, address);
    const theirs = policyOf(settingsOf(inForce));
    const place = prefixFromTrusted(address);
    cases.push({
      accepts,
      routesLeft: routesLeft === 0 ? 0 : Math.floor(room / own.length),
      dst: place,
      profiles: profilesAt(profiles, address),
      limitsOf: limitsOf(inForce, place, { profile: [] }),
      // Of an attack on many, giving up some would help nobody.
      policy: { ...theirs, allowBlackhole: theirs.allowBlackhole && isOnFew },
    });
  }
  return settleAll(ground, cases, judgedXid, notes);
}

/**
 * What is let be done for all of the subnet, once its holders and the policies inside it were asked. `isOnFew`: so few addresses
 * are attacked that each can have its own measures. `mayGiveUp`: its policy lets addresses be given up.
 */
function holdWhole(
  { attack }: MitigationGround,
  whole: MitigationCase,
  parts: readonly Part[],
  isOnFew: boolean,
  mayGiveUp: boolean,
): { readonly held: MitigationPolicy; readonly notes: readonly MeasureNote[] } {
  const { policy, profiles } = whole;
  const hold = (because: string) => ({
    held: { mitigation: 'observe', because, overrideAccept: false, allowBlackhole: false } as const,
    notes: [],
  });
  const narrower = narrowestPart(policy, parts);
  if (narrower !== undefined) {
    return hold(
      `The policy for ${narrower.dst} allows less than the one for ${attack.dst}: measures are on attacked addresses, as their own policies have it.`,
    );
  }
  const measures = decideMeasures(whole);
  if (mayGiveUp && isOnFew && measures.flowrules.some(({ held }) => held?.by === 'budget')) {
    return hold(
      `No route is left of the budget, and no policy gives up all of ${attack.dst}: those attacked are given up, as their own policies have it.`,
    );
  }
  if (!limitsTogether(measures, parts)) return { held: policy, notes: [] };
  if (isOnFew) {
    return hold(
      `A limit on all of ${attack.dst} would be shared by all who hold addresses of it: those attacked have their own.`,
    );
  }
  const text = `More addresses of ${attack.dst} are attacked than can have limits of their own: all of them share one.`;
  return { held: policy, notes: [{ vector: profiles[0]?.vector ?? 'total', where: 'flowspec', text }] };
}

function policyAt(address: string, policy: MitigationPolicy, parts: readonly Part[]): MitigationPolicy {
  const place = prefixFromTrusted(address);
  const around = parts
    .map((part) => ({ part, prefix: prefixFromTrusted(part.dst) }))
    .filter(({ prefix }) => prefixContains(prefix, place));
  return around.toSorted((a, b) => b.prefix.length - a.prefix.length)[0]?.part.policy ?? policy;
}

/** Inside the attack's subnet: what stands there was made for that address alone. */
function isInside(dst: Prefix, { canonical }: { readonly canonical: { readonly dst: string } }): boolean {
  const place = prefixFromTrusted(canonical.dst);
  return place.length > dst.length && prefixContains(dst, place);
}

function knownAddresses({ routes, rules }: StandingMeasures, dst: Prefix): string[] {
  const inside = [...routes.filter(({ isOwn }) => isOwn), ...rules].filter((each) => isInside(dst, each));
  return [...new Set(inside.map(({ canonical }) => canonical.dst))];
}

const nothing: Measures = { flowrules: [], edge: [], notes: [], faults: [], coverage: {} };

/** `cases`: first of the whole, then of addresses of it. What stands for others goes. */
function settleAll(
  { attack, standing, isWaived }: MitigationGround,
  cases: readonly MitigationCase[],
  judgedXid: string,
  told: readonly MeasureNote[],
): Decision {
  const dst = prefixFromTrusted(attack.dst);
  const placed: PlacedMeasures[] = [];
  const notes = [...told];
  const faults: string[] = [];
  let rulesLeft = MOST_EDGE_RULES;
  for (const [index, each] of cases.entries()) {
    const place = formatPrefix(each.dst);
    const isHere = (measure: { readonly canonical: { readonly dst: string } }) =>
      index === 0 ? !isInside(dst, measure) : measure.canonical.dst === place;
    const decided = each.profiles.length === 0 ? nothing : decideMeasures(each);
    const named = <T extends { readonly purpose: string }>(
      kind: 'firewall_rule' | 'flowrule',
      measures: readonly T[],
    ) =>
      measures
        .map((measure) => (index === 0 ? measure : { ...measure, purpose: `${measure.purpose} ${place}` }))
        .filter(({ purpose }) => !isWaived(kind, purpose));
    const wanted: Measures = {
      ...decided,
      flowrules: named('flowrule', decided.flowrules),
      edge: named('firewall_rule', decided.edge),
    };
    const routes = standing.routes.filter((route) => !route.isOwn || isHere(route));
    const rules = standing.rules.filter(isHere);
    const settled = settleMeasures(each, wanted, routes, rules);
    const make = index === 0 ? settled.edge.make : settled.edge.make.slice(0, Math.max(0, rulesLeft));
    if (index > 0) rulesLeft -= rules.length - settled.edge.remove.length + make.length;
    placed.push({
      settled: { ...settled, edge: { ...settled.edge, make } },
      overridesAccept: each.policy.overrideAccept,
    });
    notes.push(...wanted.notes);
    faults.push(...decided.faults);
  }
  const places = new Set(cases.slice(1).map((each) => formatPrefix(each.dst)));
  const isLeft = (measure: { readonly canonical: { readonly dst: string } }) =>
    isInside(dst, measure) && !places.has(measure.canonical.dst);
  const uuids = (rows: readonly { readonly uuid: string }[]) => rows.map(({ uuid }) => uuid);
  const left: Settled = {
    flowrules: { keep: [], make: [], remove: uuids(standing.routes.filter((row) => row.isOwn && isLeft(row))) },
    edge: { make: [], remove: uuids(standing.rules.filter(isLeft)) },
  };
  const allowed = cases
    .map(({ policy }) => policy.mitigation)
    .reduce((most, each) => (mitigations.indexOf(each) > mitigations.indexOf(most) ? each : most));
  return { placed: [...placed, { settled: left, overridesAccept: false }], notes, faults, allowed, judgedXid };
}

/** Thresholds by the policies in force, and what is usual by the detector's word: of each vector, else of the one that fired. */
function limitsOf(
  policies: readonly PolicyInForce[],
  dst: Prefix,
  { threshold, profile }: Omit<ToldAttack, 'phase'>,
): (vector: string) => VectorLimits {
  const effective = effectivePolicy(
    policies.map(({ uuid, rank, subnet, settings }) => ({
      uuid,
      rank,
      subnets: subnet === null ? [] : [subnet],
      thresholds: { ...settings.thresholds },
      ...(settings.aggregate_thresholds && { aggregate_thresholds: { ...settings.aggregate_thresholds } }),
      hold_s: settings.hold_s,
      baseline_factor: settings.baseline_factor,
    })),
  );
  const isAddress = dst.length === familyBits(dst.family);
  const thresholds = isAddress ? effective.thresholds : effective.aggregateThresholds;
  return (vector) => {
    if (!vectors.some((name) => name === vector)) return {};
    const { pps, bps } = thresholds[vectorNumber(vector as Vector)] ?? {};
    const told = profile.find((each) => each.vector === vector);
    const fired = (metric: 'pps' | 'bps') =>
      threshold?.vector === vector && threshold.metric === metric ? threshold.baseline : undefined;
    const baselinePps = told?.baseline_pps ?? fired('pps');
    const baselineBps = told?.baseline_bps ?? fired('bps');
    return { pps, bps, baselinePps, baselineBps };
  };
}

async function findWidening(
  executor: Executor,
  { attack, owners }: MitigationGround,
  dst: Prefix,
  policy: MitigationPolicy,
): Promise<Widening | undefined> {
  if (owners === undefined || !owners.alone) return undefined;
  const prefix = prefixOf(dst, Math.max(owners.length, Math.min(dst.length, widestLengths[dst.family])));
  if (prefix.length >= dst.length) return undefined;
  const text = formatPrefix(prefix);
  return (await mayCover(executor, text, policy))
    ? { prefix, standing: await loadInside(executor, text, attack.uuid) }
    : undefined;
}

/** A flowrule for one address may be one for all of a subnet: nobody's policy in it allows less. */
async function mayCover(executor: Executor, subnet: string, policy: MitigationPolicy): Promise<boolean> {
  const weakest = await weakestPolicy(executor, subnet);
  return announcesRoutes(weakest) && (weakest.overrideAccept || !policy.overrideAccept);
}

/** What was widened to a subnet in which somebody allows less by now. */
async function findTooWide(executor: Executor, { attack, standing, policies }: MitigationGround): Promise<string[]> {
  const { length } = prefixFromTrusted(attack.dst);
  const wide = standing.routes.filter(
    ({ isOwn, released, canonical }) => isOwn && !released && prefixFromTrusted(canonical.dst).length < length,
  );
  const tooWide: string[] = [];
  for (const { uuid, canonical } of wide) {
    if (!(await mayCover(executor, canonical.dst, policyOf(settingsOf(policies))))) tooWide.push(uuid);
  }
  return tooWide;
}
