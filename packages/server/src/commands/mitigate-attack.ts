/**
 * Does something about an attack, in the transaction of the report of it: decides the measures that it asks for, compares
 * them with those that stand, and writes the difference. Owns when measures are looked at again and how long they stay; what
 * they are is core's mitigation/ to know.
 *
 * Measures stay an hour longer than the last report, so that a detector that dies leaves nothing for ever; when the attack
 * ends, for as long as its policy holds them, which doubles when it comes back (decision 0142).
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';
import { policyDefaults } from '@levee/contract/schemas/detection.ts';
import { effectivePolicy } from '@levee/core/detection/policy.ts';
import { type Vector, vectorNumber, vectors } from '@levee/core/detection/vector.ts';
import { announcesRoutes, decideMeasures, type MitigationCase, type Widening } from '@levee/core/mitigation/decide.ts';
import { mitigationHoldSeconds, REMEMBERED_SECONDS } from '@levee/core/mitigation/hold.ts';
import { type Measures, type Mitigation, mitigations, vectorOfPurpose } from '@levee/core/mitigation/measure.ts';
import type { VectorLimits } from '@levee/core/mitigation/rate.ts';
import { type Settled, settleMeasures } from '@levee/core/mitigation/settle.ts';
import { familyBits, type Prefix, prefixOf } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { readAcceptingRules } from '../store/accepting-rules.ts';
import { budgetTurn } from '../store/budget-turn.ts';
import type { AttackDetails, AttackRow } from './attack-row.ts';
import { type PolicyInForce, policiesInForce } from './detection-policy.ts';
import type { Executor } from './executor.ts';
import {
  countRoutes,
  findOwnersPlace,
  loadInside,
  loadStandingMeasures,
  loadWaived,
  type OwnersPlace,
  type StandingMeasures,
} from './standing-measures.ts';
import {
  endMeasures,
  holdFlowrule,
  makeFlowrule,
  makeRules,
  noteMeasures,
  refreshMeasures,
  removeMeasures,
} from './write-measures.ts';

export interface MitigationSettings {
  /** FlowSpec routes of the installation that may be announced at once. */
  readonly flowspecBudget: number;
  /** Of measures that were left out, and of attacks whose measures could not be decided: mistakes of ours. */
  readonly logError?: (error: unknown, message: string) => void;
}

export const defaultFlowspecBudget = 1000;
export const defaultMitigation: MitigationSettings = { flowspecBudget: defaultFlowspecBudget };

/** After the last report. */
const LEASE_MILLISECONDS = 3_600_000;
/** What is left of it when it is renewed: not with each report. */
const RENEWED_BELOW_MILLISECONDS = 1_800_000;
/** Between two changes of an attack's measures, unless a vector of it has none. */
const SETTLE_MILLISECONDS = 5_000;
const MOST_ACTIONS = 100;
/** Of the subnet that flowrules are widened to. */
const widestLengths = { 4: 24, 6: 48 } as const;

/** `detected`: the report that made or changed `attack`. In its transaction; told again it changes nothing. */
export async function mitigateAttack(
  executor: Executor,
  attack: AttackRow,
  detected: DetectedAttack,
  now: Date,
  { flowspecBudget, logError }: MitigationSettings = defaultMitigation,
): Promise<void> {
  if (!executor.inTransaction) throw new Error('an attack is mitigated outside a transaction');
  const policies = await policiesInForce(executor, attack.dst);
  if (attack.ended_ms !== null) return end(executor, attack, policies);
  if (detected.phase === 'ended' || detected.profile.length === 0) return;

  const settings = policies[0]?.settings ?? policyDefaults;
  const announces = announcesRoutes(settings);
  if (announces) await executor.rows(budgetTurn, []);
  const standing = await loadStandingMeasures(executor, attack);
  const state = await readState(executor, attack.uuid);
  const dst = prefixFromTrusted(attack.dst);
  const place = await findOwnersPlace(executor, attack, widestLengths[dst.family]);
  const own = standing.routes.filter(({ isOwn }) => isOwn);
  const used = announces
    ? await countRoutes(
        executor,
        own.map(({ uuid }) => uuid),
      )
    : 0;
  const routesLeft = Math.max(0, flowspecBudget - used);
  const widening = announces && routesLeft === 0 ? await findWidening(executor, attack, dst, place) : undefined;
  const destinations = [attack.dst, ...(widening === undefined ? [] : [formatPrefix(widening.prefix)])];
  const { rules: accepts, judgedXid } = await readAcceptingRules(executor.client, destinations);
  const attackCase: MitigationCase = {
    dst,
    profiles: detected.profile,
    limitsOf: limitsOf(policies, dst, detected),
    policy: {
      mitigation: settings.mitigation,
      overrideAccept: settings.override_accept,
      allowBlackhole: settings.mitigation === 'rtbh' || (announces && settings.allow_rtbh),
    },
    accepts,
    routesLeft,
    widening,
  };
  const isWaived = await loadWaived(executor, attack.uuid);
  const decided = decideMeasures(attackCase);
  for (const fault of decided.faults) logError?.(new Error(fault), `attack ${attack.uuid} on ${attack.dst}`);
  const wanted: Measures = {
    ...decided,
    flowrules: decided.flowrules.filter(({ purpose }) => !isWaived('flowrule', purpose)),
    edge: decided.edge.filter(({ purpose }) => !isWaived('firewall_rule', purpose)),
  };
  const settled = settleMeasures(attackCase, wanted, standing.routes, standing.rules);
  const until = new Date(now.getTime() + LEASE_MILLISECONDS);
  if (isTooSoon(state.measures_ms, now, detected, standing, state.mitigation, settings.mitigation)) {
    return renew(executor, attack, standing, keepAll(settled, standing), place, until, now);
  }
  const done = await write(executor, attack, settled, place, {
    overridesAccept: settings.override_accept,
    judgedXid,
    until,
  });
  await renew(executor, attack, standing, settled, place, until, now);
  if (done.length === 0) return;
  const mitigation = higher(state.mitigation, await strongest(executor, attack.uuid));
  const told = done.map(({ action, descr }) => ({ at: now.toISOString(), action, descr: descr.slice(0, 255) }));
  const actions = [...(state.details.actions ?? []), ...told].slice(-MOST_ACTIONS);
  await noteMeasures(executor, attack.uuid, mitigation, { ...state.details, actions }, wanted.notes, now);
}

interface AttackState {
  readonly details: AttackDetails;
  readonly mitigation: Mitigation;
  readonly measures_ms: number | null;
}

const stateStatement = {
  name: 'mitigate_state',
  text: `select details, mitigation, round(date_part('epoch', measures_at) * 1000) as measures_ms from attack
    where uuid = $1 for update`,
};

async function readState(executor: Executor, uuid: string): Promise<AttackState> {
  const [state] = await executor.rows<AttackState>(stateStatement, [uuid]);
  if (state === undefined) throw new Error('an attack that was written is not there');
  return state;
}

/** Thresholds by the policies in force, and what is usual by the detector's word: of each vector, else of the one that fired. */
function limitsOf(
  policies: readonly PolicyInForce[],
  dst: Prefix,
  { threshold, profile }: DetectedAttack,
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
      threshold.vector === vector && threshold.metric === metric ? threshold.baseline : undefined;
    const baselinePps = told?.baseline_pps ?? fired('pps');
    const baselineBps = told?.baseline_bps ?? fired('bps');
    return { pps, bps, baselinePps, baselineBps };
  };
}

async function findWidening(
  executor: Executor,
  attack: AttackRow,
  dst: Prefix,
  place: OwnersPlace | undefined,
): Promise<Widening | undefined> {
  if (place === undefined || !place.alone) return undefined;
  const prefix = prefixOf(dst, Math.max(place.length, Math.min(dst.length, widestLengths[dst.family])));
  if (prefix.length >= dst.length) return undefined;
  return { prefix, standing: await loadInside(executor, formatPrefix(prefix), attack.uuid) };
}

/** Measures follow an attack at their own pace; a vector without any, and another policy, are dealt with at once. */
function isTooSoon(
  changedMs: number | null,
  now: Date,
  { profile }: DetectedAttack,
  { routes, rules }: StandingMeasures,
  taken: Mitigation,
  allowed: Mitigation,
): boolean {
  if (changedMs === null || now.getTime() - changedMs >= SETTLE_MILLISECONDS) return false;
  const known = new Set([...routes, ...rules].map(({ purpose }) => vectorOfPurpose(purpose)));
  return (
    profile.every(({ vector }) => known.has(vector)) &&
    higher(taken, allowed) === allowed &&
    (taken === 'observe') === (allowed === 'observe')
  );
}

function keepAll(settled: Settled, { routes }: StandingMeasures): Settled {
  const keep = routes.filter(({ isOwn }) => isOwn).map(({ uuid }) => ({ uuid, held: undefined }));
  return { ...settled, flowrules: { keep, make: [], remove: [] }, edge: { make: [], remove: [] } };
}

interface Writing {
  readonly overridesAccept: boolean;
  readonly judgedXid: string;
  readonly until: Date;
}

/** In words, what was changed. */
async function write(
  executor: Executor,
  attack: AttackRow,
  { flowrules, edge }: Settled,
  place: OwnersPlace | undefined,
  { overridesAccept, judgedXid, until }: Writing,
): Promise<{ readonly action: string; readonly descr: string }[]> {
  const done: { action: string; descr: string }[] = [];
  const replaced = flowrules.make.flatMap(({ replaces = [] }) => replaces);
  await removeMeasures(executor, 'flowrule', [...flowrules.remove, ...replaced]);
  await removeMeasures(executor, 'firewall_rule', edge.remove);
  if (flowrules.remove.length + replaced.length > 0) {
    done.push({ action: 'flowspec-withdrawn', descr: `${flowrules.remove.length + replaced.length} flowrules` });
  }
  if (edge.remove.length > 0) done.push({ action: 'edge-removed', descr: `${edge.remove.length} rules` });
  const rules = place === undefined ? [] : edge.make;
  if (place !== undefined) await makeRules(executor, attack, place.subnet, rules, until);
  for (const { purpose } of rules) done.push({ action: 'edge', descr: purpose });
  for (const measure of flowrules.make) {
    const { purpose, held, canonical } = measure;
    if (!(await makeFlowrule(executor, attack, measure, overridesAccept, judgedXid, until))) continue;
    const action = held !== undefined ? 'flowspec-proposed' : canonical.action === 'blackhole' ? 'rtbh' : 'flowspec';
    done.push({ action, descr: held === undefined ? purpose : `${purpose}: ${held.reason}` });
  }
  for (const { uuid, held } of flowrules.keep) {
    if (!(await holdFlowrule(executor, uuid, held, judgedXid))) continue;
    done.push(
      held === undefined
        ? { action: 'flowspec', descr: uuid }
        : { action: 'flowspec-held', descr: `${uuid}: ${held.reason}` },
    );
  }
  return done;
}

/** What stays is this attack's from now on, and stays for another while. */
async function renew(
  executor: Executor,
  attack: AttackRow,
  { routes, rules }: StandingMeasures,
  { flowrules, edge }: Settled,
  place: OwnersPlace | undefined,
  until: Date,
  now: Date,
): Promise<void> {
  const isDue = (row: { readonly attack_uuid: string | null; readonly expires_ms: number | null }) =>
    row.attack_uuid !== attack.uuid ||
    row.expires_ms === null ||
    row.expires_ms < now.getTime() + RENEWED_BELOW_MILLISECONDS;
  const kept = new Set(flowrules.keep.map(({ uuid }) => uuid));
  const gone = new Set(edge.remove);
  const dueRoutes = routes.filter((row) => row.isOwn && kept.has(row.uuid) && isDue(row));
  const dueRules = rules.filter((row) => !gone.has(row.uuid) && isDue(row));
  const uuids = (rows: readonly { readonly uuid: string }[]) => rows.map(({ uuid }) => uuid);
  const due = { routes: uuids(dueRoutes), rules: uuids(dueRules), subnet: place?.subnet };
  await refreshMeasures(executor, attack, due, until);
}

const strongestStatement = {
  name: 'mitigate_strongest',
  text: `select case
      when exists (select from flowrule f where f.attack_uuid = $1 and f.held is null and f.deletion_marked_at is null
        and f.fields->>'action' = 'blackhole') then 'rtbh'
      when exists (select from flowrule f where f.held is null and f.deletion_marked_at is null and f.origin = 'attack'
        and (f.attack_uuid = $1 or f.dst >>= (select dst from attack where uuid = $1))) then 'flowspec'
      when exists (select from firewall_rule r where r.attack_uuid = $1 and r.deletion_marked_at is null) then 'edge'
      else 'observe' end as mitigation`,
};

/** Of what stands, not of what is only proposed. */
async function strongest(executor: Executor, uuid: string): Promise<Mitigation> {
  const [row] = await executor.rows<{ mitigation: Mitigation }>(strongestStatement, [uuid]);
  return row?.mitigation ?? 'observe';
}

function higher(a: Mitigation, b: Mitigation): Mitigation {
  return mitigations.indexOf(a) > mitigations.indexOf(b) ? a : b;
}

const earlierStatement = {
  name: 'mitigate_earlier',
  text: `select count(*)::int as earlier from attack e join attack a on a.uuid = $1
    where e.dst = a.dst and e.uuid <> a.uuid and e.ended_at is not null and e.ended_at <= a.started_at
      and e.continues is distinct from a.uuid and a.continues is distinct from e.uuid
      and e.ended_at > a.started_at - make_interval(secs => ${REMEMBERED_SECONDS})`,
};

async function end(executor: Executor, attack: AttackRow, policies: readonly PolicyInForce[]): Promise<void> {
  const base = (policies[0]?.settings ?? policyDefaults).mitigation_hold_s;
  const [row] = await executor.rows<{ earlier: number }>(earlierStatement, [attack.uuid]);
  const seconds = mitigationHoldSeconds(base, row?.earlier ?? 0);
  await endMeasures(executor, attack.uuid, new Date((attack.ended_ms ?? 0) + seconds * 1000));
}
