/**
 * What stands against an attack: its rules at the edge, its flowrules, those that were taken back by hand, and what other
 * attacks leave of the budget. Owns which rows count as an attack's; writes nothing.
 */
import type { CanonicalFlowrule } from '@levee/core/flowspec/flowrule.ts';
import type { StandingFlowrule } from '@levee/core/mitigation/decide.ts';
import type { StandingRoute, StandingRule } from '@levee/core/mitigation/settle.ts';
import type { AttackRow } from './attack-row.ts';
import type { Executor, Statement } from './executor.ts';
import { milliseconds } from './stored-row.ts';

export interface StandingRouteRow extends StandingRoute {
  readonly attack_uuid: string | null;
  readonly held: string | null;
  readonly held_by: string | null;
  readonly expires_ms: number | null;
}

export interface StandingRuleRow extends StandingRule {
  readonly attack_uuid: string;
  readonly expires_ms: number | null;
}

export interface StandingMeasures {
  readonly routes: readonly StandingRouteRow[];
  readonly rules: readonly StandingRuleRow[];
}

/**
 * Its own, and those that an ended attack on the same destination has left: the attack is back. Of flowrules also whoever's
 * are announced for all of it.
 */
const ofAttack = `(r.attack_uuid = $1 or (r.dst = $2::cidr
    and exists (select from attack a where a.uuid = r.attack_uuid and a.ended_at is not null)))`;

const routesText = `select r.uuid::text as uuid, coalesce(r.purpose, '') as purpose, r.fields as canonical,
      r.origin = 'attack' and ${ofAttack} as "isOwn", r.released,
      r.overrides_accept as "overridesAccept", r.attack_uuid::text as attack_uuid, r.held, r.held_by,
      ${milliseconds('r.expires_at')} as expires_ms
    from flowrule r
    where r.deletion_marked_at is null
      and ((r.origin = 'attack' and ${ofAttack}) or (r.dst >>= $2::cidr and r.held is null))
    order by r.sequence`;

const rulesText = `select r.uuid::text as uuid, r.purpose, r.fields as canonical, r.attack_uuid::text as attack_uuid,
      ${milliseconds('r.expires_at')} as expires_ms
    from firewall_rule r
    where r.origin = 'attack' and r.deletion_marked_at is null and ${ofAttack}
    order by r.sequence`;

const reading = {
  routes: { name: 'measures_routes', text: routesText },
  rules: { name: 'measures_rules', text: rulesText },
};
const locking = {
  routes: { name: 'measures_routes_locked', text: `${routesText} for update` },
  rules: { name: 'measures_rules_locked', text: `${rulesText} for update` },
};

export function loadStandingMeasures(executor: Executor, attack: AttackRow): Promise<StandingMeasures> {
  return loadBy(executor, attack, reading);
}

/** Before any of them is written: nobody else changes them then. The turn (`budgetTurn`) is taken before, where it is. */
export function lockStandingMeasures(executor: Executor, attack: AttackRow): Promise<StandingMeasures> {
  return loadBy(executor, attack, locking);
}

async function loadBy(
  executor: Executor,
  { uuid, dst }: AttackRow,
  statements: Readonly<Record<'routes' | 'rules', Statement>>,
): Promise<StandingMeasures> {
  const routes = await executor.rows<StandingRouteRow>(statements.routes, [uuid, dst]);
  const rules = await executor.rows<StandingRuleRow>(statements.rules, [uuid, dst]);
  return { routes, rules };
}

const waivedStatement = {
  name: 'measures_waived',
  text: 'select kind, purpose from waived_measure where attack_uuid = $1',
};

/** Purposes that somebody took back, by kind. */
export async function loadWaived(
  executor: Executor,
  attackUuid: string,
): Promise<(kind: 'firewall_rule' | 'flowrule', purpose: string) => boolean> {
  const rows = await executor.rows<{ kind: string; purpose: string }>(waivedStatement, [attackUuid]);
  return (kind, purpose) => rows.some((row) => row.kind === kind && row.purpose === purpose);
}

const usedStatement = {
  name: 'measures_used',
  text: `select count(*)::int as used from flowrule
    where deletion_marked_at is null and held is null and fields->>'action' <> 'blackhole' and uuid <> all($1::uuid[])`,
};

/** How many routes are announced, or are to be, besides these. The turn (`budgetTurn`) is the caller's. */
export async function countRoutes(executor: Executor, besides: readonly string[]): Promise<number> {
  const [row] = await executor.rows<{ used: number }>(usedStatement, [besides]);
  return row?.used ?? 0;
}

const placeStatement = {
  name: 'measures_place',
  text: `select s.subnet::text as subnet, masklen(s.subnet) as length,
      not exists (select from subnet u where u.role = 'user' and u.account_uuid <> $1
        and u.subnet && set_masklen($2::cidr, least(masklen($2::cidr), greatest(masklen(s.subnet), $3)))::cidr) as alone
    from subnet s where s.account_uuid = $1 and s.subnet >>= $2::cidr`,
};

export interface OwnersPlace {
  /** The owner's grant that covers the destination. */
  readonly subnet: string;
  readonly length: number;
  /** Nobody else has addresses in the subnet around the destination. */
  readonly alone: boolean;
}

/** Undefined: the owner holds the destination no more. `widest`: how long the subnet around it is at least. */
export async function findOwnersPlace(
  executor: Executor,
  { owner_uuid, dst }: AttackRow,
  widest: number,
): Promise<OwnersPlace | undefined> {
  const [place] = await executor.rows<OwnersPlace>(placeStatement, [owner_uuid, dst, widest]);
  return place;
}

const insideStatement = {
  name: 'measures_inside',
  text: `select uuid::text as uuid, fields as canonical from flowrule
    where origin = 'attack' and deletion_marked_at is null and held is null and dst << $1::cidr and attack_uuid <> $2
    order by sequence`,
};

/** Flowrules of other attacks inside a subnet. */
export function loadInside(executor: Executor, subnet: string, attackUuid: string): Promise<StandingFlowrule[]> {
  return executor.rows<StandingFlowrule & { canonical: CanonicalFlowrule }>(insideStatement, [subnet, attackUuid]);
}
