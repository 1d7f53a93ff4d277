/**
 * Does something about an attack, in the transaction of the report of it, or whenever what is known of its destination is
 * another: decides the measures that it asks for, compares them with those that stand, and writes the difference. Owns when
 * measures are looked at again and how long they stay; what they are is core's mitigation/ to know.
 *
 * Measures stay an hour longer than the last report, so that a detector that dies leaves nothing for ever; when the attack
 * ends, for as long as its policy holds them, which doubles when it comes back (decision 0142).
 */
import { mitigationHoldSeconds, REMEMBERED_SECONDS } from '@levee/core/mitigation/hold.ts';
import { type Mitigation, mitigations, vectorOfPurpose } from '@levee/core/mitigation/measure.ts';
import { sightOf, UNSEEN_MILLISECONDS } from '@levee/core/mitigation/seen.ts';
import { familyBits } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { budgetTurn } from '../store/budget-turn.ts';
import type { AttackDetails, AttackRow } from './attack-row.ts';
import { type PolicyInForce, policiesInForce } from './detection-policy.ts';
import type { Executor } from './executor.ts';
import { type Decision, decideOn, type MitigationGround, type ToldAttack, widestLengths } from './mitigation-places.ts';
import {
  countRoutes,
  findOwnersPlace,
  loadStandingMeasures,
  loadWaived,
  lockStandingMeasures,
  type OwnersPlace,
  type StandingMeasures,
} from './standing-measures.ts';
import { settingsOf } from './weakest-policy.ts';
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
  /** A BGP speaker is configured: what is not held is announced. Absent: none is. */
  readonly hasSpeaker?: boolean | undefined;
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

/** Why measures are looked at though no report asks for it. */
export interface Review {
  /** Of the last report. */
  readonly reportedAt: Date;
  /** Vectors of which nothing was seen are not waited for any longer. */
  readonly isOver: boolean;
}

/** `told`: what made or changed `attack`, or was told of it last. In its transaction; told again it changes nothing. */
export async function mitigateAttack(
  executor: Executor,
  attack: AttackRow,
  told: ToldAttack,
  now: Date,
  settings: MitigationSettings = defaultMitigation,
  review?: Review,
): Promise<void> {
  if (!executor.inTransaction) throw new Error('an attack is mitigated outside a transaction');
  const policies = await policiesInForce(executor, attack.dst);
  if (attack.ended_ms !== null) return end(executor, attack, policies);
  if (told.phase === 'ended' || told.profile.length === 0) return;

  const state = await readState(executor, attack.uuid);
  const standing = await loadStandingMeasures(executor, attack);
  const purposes = [...standing.routes, ...standing.rules].map(({ purpose }) => purpose);
  const dst = prefixFromTrusted(attack.dst);
  const isSubnet = dst.length < familyBits(dst.family);
  const { seen, awaited } = sightOf(told.profile, purposes, { isOver: review?.isOver === true, isSubnet });
  if (awaited.length > 0) await executor.rows(awaitStatement, [attack.uuid, UNSEEN_MILLISECONDS]);
  const ground = {
    attack,
    told: { ...told, profile: [...seen] },
    policies,
    owners: await findOwnersPlace(executor, attack, widestLengths[dst.family]),
    isWaived: await loadWaived(executor, attack.uuid),
  };
  let current = standing;
  let decision = await decideOn(executor, {
    ...ground,
    standing,
    routesLeft: await routesLeft(executor, standing, settings),
  });
  const until = new Date((review?.reportedAt ?? now).getTime() + LEASE_MILLISECONDS);
  if (review === undefined && isTooSoon(state, now, ground.told, standing, decision.allowed)) {
    return renew(executor, attack, standing, undefined, ground.owners, until, now);
  }
  if (!isAnyWritten(decision, standing)) {
    return renew(executor, attack, standing, undefined, ground.owners, until, now);
  }
  const isBudgeted = isAnnouncing(decision, standing);
  if (isBudgeted || purposes.length > 0) {
    // Whoever takes the turn may have to lock rows of others: it comes before any row of a flowrule.
    if (isBudgeted) await executor.rows(budgetTurn, []);
    if (purposes.length > 0) current = await lockStandingMeasures(executor, attack);
    const again: MitigationGround = {
      ...ground,
      standing: current,
      routesLeft: await routesLeft(executor, current, settings),
    };
    decision = await decideOn(executor, again);
  }
  for (const fault of decision.faults) settings.logError?.(new Error(fault), `attack ${attack.uuid} on ${attack.dst}`);
  const done = await write(executor, attack, decision, current, ground.owners, until, settings.hasSpeaker === true);
  await renew(executor, attack, current, decision, ground.owners, until, now);
  if (done.length === 0) return;
  const mitigation = higher(state.mitigation, await strongest(executor, attack.uuid, settings.hasSpeaker === true));
  const words = done.map(({ action, descr }) => ({ at: now.toISOString(), action, descr: descr.slice(0, 255) }));
  const actions = [...(state.details.actions ?? []), ...words].slice(-MOST_ACTIONS);
  await noteMeasures(executor, attack.uuid, mitigation, { ...state.details, actions }, decision.notes, now);
}

const awaitStatement = {
  name: 'mitigate_await',
  text: `insert into mitigation_review (attack_uuid, due_at)
    select $1, clock_timestamp() + make_interval(secs => $2::float8 / 1000)
    where not exists (select from mitigation_review where attack_uuid = $1)`,
};

async function routesLeft(
  executor: Executor,
  { routes }: StandingMeasures,
  { flowspecBudget }: MitigationSettings,
): Promise<number> {
  const own = routes.filter(({ isOwn }) => isOwn).map(({ uuid }) => uuid);
  return Math.max(0, flowspecBudget - (await countRoutes(executor, own)));
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

/** Measures follow an attack at their own pace; a vector without any, and another policy, are dealt with at once. */
function isTooSoon(
  { measures_ms: changedMs, mitigation: taken }: AttackState,
  now: Date,
  { profile }: ToldAttack,
  { routes, rules }: StandingMeasures,
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

function isAnyWritten(decision: Decision, standing: StandingMeasures): boolean {
  return decision.placed.some(
    ({ settled: { flowrules, edge } }) =>
      flowrules.make.length + flowrules.remove.length + edge.make.length + edge.remove.length > 0 ||
      flowrules.keep.some(({ uuid, held }) => heldOf(standing, uuid) !== (held?.reason ?? null)),
  );
}

/** Something of it takes a route of the budget, or takes others' in. */
function isAnnouncing(decision: Decision, standing: StandingMeasures): boolean {
  return decision.placed.some(
    ({ settled: { flowrules } }) =>
      flowrules.make.some(({ held }) => held === undefined) ||
      flowrules.keep.some(({ uuid, held }) => held === undefined && heldOf(standing, uuid) !== null),
  );
}

function heldOf({ routes }: StandingMeasures, uuid: string): string | null {
  return routes.find((route) => route.uuid === uuid)?.held ?? null;
}

interface Action {
  readonly action: string;
  readonly descr: string;
}

/** In words, what was changed. */
async function write(
  executor: Executor,
  attack: AttackRow,
  { placed, judgedXid }: Decision,
  standing: StandingMeasures,
  owners: OwnersPlace | undefined,
  until: Date,
  hasSpeaker: boolean,
): Promise<Action[]> {
  const done: Action[] = [];
  const routes = placed.flatMap(({ settled: { flowrules } }) => [
    ...flowrules.remove,
    ...flowrules.make.flatMap(({ replaces = [] }) => replaces),
  ]);
  const rules = placed.flatMap(({ settled: { edge } }) => edge.remove);
  await removeMeasures(executor, 'flowrule', routes);
  await removeMeasures(executor, 'firewall_rule', rules);
  if (routes.length > 0) done.push({ action: 'flowspec-withdrawn', descr: `${routes.length} flowrules` });
  if (rules.length > 0) done.push({ action: 'edge-removed', descr: `${rules.length} rules` });
  const made = owners === undefined ? [] : placed.flatMap(({ settled: { edge } }) => edge.make);
  if (owners !== undefined) await makeRules(executor, attack, owners.subnet, made, until);
  for (const { purpose } of made) done.push({ action: 'edge', descr: purpose });
  const announced = (action: string, descr: string): Action =>
    hasSpeaker ? { action, descr } : { action: 'flowspec-proposed', descr: `${descr}: no BGP speaker is configured` };
  for (const { settled, overridesAccept } of placed) {
    for (const measure of settled.flowrules.make) {
      const { purpose, held, canonical } = measure;
      if (!(await makeFlowrule(executor, attack, measure, overridesAccept, judgedXid, until))) continue;
      const action = canonical.action === 'blackhole' ? 'rtbh' : 'flowspec';
      const isHeld = held !== undefined;
      done.push(
        isHeld ? { action: 'flowspec-proposed', descr: `${purpose}: ${held.reason}` } : announced(action, purpose),
      );
    }
    for (const { uuid, held } of settled.flowrules.keep) {
      if ((held?.reason ?? null) === heldOf(standing, uuid)) continue;
      if (!(await holdFlowrule(executor, uuid, held, judgedXid))) continue;
      const descr = `${uuid}: ${held?.reason}`;
      done.push(held === undefined ? announced('flowspec', uuid) : { action: 'flowspec-held', descr });
    }
  }
  return done;
}

/** What stays is this attack's from now on, and stays for another while. `decision`: undefined: all of it stays. */
async function renew(
  executor: Executor,
  attack: AttackRow,
  { routes, rules }: StandingMeasures,
  decision: Decision | undefined,
  owners: OwnersPlace | undefined,
  until: Date,
  now: Date,
): Promise<void> {
  const isDue = (row: { readonly attack_uuid: string | null; readonly expires_ms: number | null }) =>
    row.attack_uuid !== attack.uuid ||
    row.expires_ms === null ||
    row.expires_ms < now.getTime() + RENEWED_BELOW_MILLISECONDS;
  const settled = (decision?.placed ?? []).map((each) => each.settled);
  const gone = new Set(settled.flatMap(({ flowrules, edge }) => [...flowrules.remove, ...edge.remove]));
  const stays = (row: StandingMeasures['routes' | 'rules'][number]) => !gone.has(row.uuid) && isDue(row);
  const uuids = (rows: readonly { readonly uuid: string }[]) => rows.map(({ uuid }) => uuid);
  const due = {
    routes: uuids(routes.filter((row) => row.isOwn && stays(row))),
    rules: uuids(rules.filter(stays)),
    subnet: owners?.subnet,
  };
  await refreshMeasures(executor, attack, due, until);
}

const strongestStatement = {
  name: 'mitigate_strongest',
  text: `select case
      when $2::boolean and exists (select from flowrule f where f.attack_uuid = $1 and f.held is null and f.failure is null
        and f.deletion_marked_at is null and f.fields->>'action' = 'blackhole') then 'rtbh'
      when $2::boolean and exists (select from flowrule f where f.held is null and f.failure is null
        and f.deletion_marked_at is null and f.origin = 'attack'
        and (f.attack_uuid = $1 or f.dst >>= (select dst from attack where uuid = $1))) then 'flowspec'
      when exists (select from firewall_rule r where r.attack_uuid = $1 and r.deletion_marked_at is null) then 'edge'
      else 'observe' end as mitigation`,
};

/** Of what stands or a speaker is being told, not of what is only proposed. */
async function strongest(executor: Executor, uuid: string, hasSpeaker: boolean): Promise<Mitigation> {
  const [row] = await executor.rows<{ mitigation: Mitigation }>(strongestStatement, [uuid, hasSpeaker]);
  return row?.mitigation ?? 'observe';
}

function higher(a: Mitigation, b: Mitigation): Mitigation {
  return mitigations.indexOf(a) > mitigations.indexOf(b) ? a : b;
}

const earlierStatement = {
  name: 'mitigate_earlier',
  text: `select count(*)::int as earlier from attack e join attack a on a.uuid = $1
    where e.dst = a.dst and e.uuid <> a.uuid and e.part_of is null and e.ended_at is not null and e.ended_at <= a.started_at
      and e.continues is distinct from a.uuid and a.continues is distinct from e.uuid
      and e.ended_at > a.started_at - make_interval(secs => ${REMEMBERED_SECONDS})`,
};

async function end(executor: Executor, attack: AttackRow, policies: readonly PolicyInForce[]): Promise<void> {
  const base = settingsOf(policies).mitigation_hold_s;
  const [row] = await executor.rows<{ earlier: number }>(earlierStatement, [attack.uuid]);
  const seconds = mitigationHoldSeconds(base, row?.earlier ?? 0);
  await endMeasures(executor, attack.uuid, new Date((attack.ended_ms ?? 0) + seconds * 1000));
}
