/**
 * The operator's detection policies: creates, changes, lists, removes them; and which of them are in force for a
 * destination. Owns the columns and the order of the stored fields. Detects and mitigates nothing.
 */
import type { RateLimits } from '@levee/contract/detector.ts';
import { policyDefaults } from '@levee/contract/schemas/detection.ts';
import { policyRank } from '../store/detector-settings.ts';
import { newUuid } from '../store/new-uuid.ts';
import { subnetText } from '../store/subnet-text.ts';
import type { Mitigation } from './attack-row.ts';
import type { Executor } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { milliseconds } from './stored-row.ts';

/** As on the wire, in the order in which they are answered. */
export interface PolicySettings {
  readonly thresholds: Readonly<Record<string, RateLimits>>;
  readonly aggregate_thresholds?: Readonly<Record<string, RateLimits>> | undefined;
  readonly mitigation: Mitigation;
  readonly hold_s: number;
  readonly baseline_factor: number;
  readonly mitigation_hold_s: number;
  readonly override_accept: boolean;
  readonly allow_rtbh: boolean;
}

/** `undefined` stays, or has its default; null takes away what is optional. */
export type PolicyFields = {
  readonly [Name in keyof PolicySettings]?: PolicySettings[Name] | undefined;
} & { readonly aggregate_thresholds?: PolicySettings['aggregate_thresholds'] | null };

export type PolicyScope =
  | { readonly kind: 'installation' }
  | { readonly kind: 'account'; readonly uuid: string }
  /** Canonical. */
  | { readonly kind: 'subnet'; readonly subnet: string };

export interface PolicyRow {
  readonly uuid: string;
  /** `installation`, a uuid, or a subnet. */
  readonly scope: string;
  readonly settings: PolicySettings;
  readonly created_ms: number;
  readonly updated_ms: number;
}

const columns = `p.uuid::text as uuid,
  coalesce(p.account_uuid::text, ${subnetText('p.subnet')}, 'installation') as scope, p.settings,
  ${milliseconds('p.created_at')} as created_ms, ${milliseconds('p.updated_at')} as updated_ms`;

const createStatement = {
  name: 'policy_create',
  text: `with p as (
      insert into detection_policy (uuid, account_uuid, subnet, settings) values ($1, $2, $3, $4) returning *
    ), logged as (insert into change (kind, object_uuid) select 'detection_policy', uuid from p)
    select ${columns} from p`,
};

const changeStatement = {
  name: 'policy_change',
  text: `with p as (
      update detection_policy set settings = $2, updated_at = now() where uuid = $1 returning *
    ), logged as (insert into change (kind, object_uuid) select 'detection_policy', uuid from p)
    select ${columns} from p`,
};

const deleteStatement = {
  name: 'policy_delete',
  text: `with p as (delete from detection_policy where uuid = $1 returning *),
      logged as (insert into change (kind, object_uuid) select 'detection_policy', uuid from p)
    select ${columns} from p`,
};

const listStatement = { name: 'policy_list', text: `select ${columns} from detection_policy p order by p.sequence` };
const readStatement = { name: 'policy_read', text: `select ${columns} from detection_policy p where p.uuid = $1` };
const lockStatement = {
  name: 'policy_lock',
  text: `select ${columns} from detection_policy p where p.uuid = $1 for update`,
};

const accountStatement = {
  name: 'policy_account',
  text: `select 1 from account where uuid = $1 and role <> 'operator' and deletion_marked_at is null for key share`,
};

const prefixStatement = {
  name: 'policy_prefix',
  text: `select 1 from subnet where role = 'provider' and subnet >>= $1::cidr`,
};

/** In a transaction. Violates `detection_policy_scope` where the scope has one already. */
export async function createPolicy(
  executor: Executor,
  scope: PolicyScope,
  fields: PolicyFields,
): Promise<Outcome<PolicyRow>> {
  if (scope.kind === 'account' && (await executor.rows(accountStatement, [scope.uuid])).length === 0) {
    const message = `scope: there is no provider or user ${scope.uuid}`;
    return refuse('not_found', { field: '/scope', code: 'not_found', message });
  }
  if (scope.kind === 'subnet' && (await executor.rows(prefixStatement, [scope.subnet])).length === 0) {
    const message = `scope: ${scope.subnet} lies in no provider's prefix; it must lie inside one`;
    return refuse('validation_failed', { field: '/scope', code: 'not_protected', message });
  }
  const [row] = await executor.rows<PolicyRow>(createStatement, [
    newUuid(),
    scope.kind === 'account' ? scope.uuid : null,
    scope.kind === 'subnet' ? scope.subnet : null,
    settingsText(policyDefaults, fields),
  ]);
  if (row === undefined) throw new Error('a policy was not stored');
  return done(row);
}

export interface ChangedPolicy {
  readonly before: PolicyRow;
  readonly after: PolicyRow;
}

/** In a transaction. */
export async function changePolicy(
  executor: Executor,
  uuid: string,
  fields: PolicyFields,
): Promise<Outcome<ChangedPolicy>> {
  const [before] = await executor.rows<PolicyRow>(lockStatement, [uuid]);
  if (before === undefined) return refuse('not_found');
  const [after] = await executor.rows<PolicyRow>(changeStatement, [uuid, settingsText(before.settings, fields)]);
  if (after === undefined) throw new Error('a locked policy is gone');
  return done({ before, after });
}

export async function deletePolicy(executor: Executor, uuid: string): Promise<Outcome<PolicyRow>> {
  const [row] = await executor.rows<PolicyRow>(deleteStatement, [uuid]);
  return row === undefined ? refuse('not_found') : done(row);
}

export function listPolicies(executor: Executor): Promise<PolicyRow[]> {
  return executor.rows<PolicyRow>(listStatement, []);
}

export async function readPolicy(executor: Executor, uuid: string): Promise<PolicyRow | undefined> {
  return (await executor.rows<PolicyRow>(readStatement, [uuid]))[0];
}

function settingsText(present: PolicySettings, given: PolicyFields): string {
  const aggregate =
    given.aggregate_thresholds === undefined ? present.aggregate_thresholds : given.aggregate_thresholds;
  const settings: PolicySettings = {
    thresholds: given.thresholds ?? present.thresholds,
    ...(aggregate !== undefined && aggregate !== null && { aggregate_thresholds: aggregate }),
    mitigation: given.mitigation ?? present.mitigation,
    hold_s: given.hold_s ?? present.hold_s,
    baseline_factor: given.baseline_factor ?? present.baseline_factor,
    mitigation_hold_s: given.mitigation_hold_s ?? present.mitigation_hold_s,
    override_accept: given.override_accept ?? present.override_accept,
    allow_rtbh: given.allow_rtbh ?? present.allow_rtbh,
  };
  return JSON.stringify(settings);
}

export interface PolicyInForce {
  readonly uuid: string;
  /** 0 installation, 1 provider, 2 user, 3 subnet. */
  readonly rank: number;
  /** Of rank 3: canonical. */
  readonly subnet: string | null;
  readonly settings: PolicySettings;
}

/** Of a policy `p`: how long the subnet or the account's prefix is by which it is for `dst`; equal ones by rank. */
const narrowestFirst = (dst: string) => `coalesce(masklen(p.subnet),
    (select max(masklen(s.subnet)) from subnet s where s.account_uuid = p.account_uuid and s.subnet >>= ${dst}), 0) desc,
  ${policyRank} desc`;

const inForceStatement = {
  name: 'policy_in_force',
  text: `select p.uuid::text as uuid, ${policyRank} as rank, ${subnetText('p.subnet')} as subnet, p.settings
    from detection_policy p left join account a on a.uuid = p.account_uuid
    where (p.account_uuid is null and p.subnet is null) or p.subnet >>= $1::cidr
      or exists (select from subnet s where s.account_uuid = p.account_uuid and s.subnet >>= $1::cidr)
    order by ${narrowestFirst('$1::cidr')}`,
};

/** Those that are for all of a destination (canonical), the narrowest first. */
export function policiesInForce(executor: Executor, dst: string): Promise<PolicyInForce[]> {
  return executor.rows<PolicyInForce>(inForceStatement, [dst]);
}

export interface PartInForce {
  /** Canonical; inside the destination. */
  readonly dst: string;
  /** A user's grant, not only a policy's scope. */
  readonly isHolders: boolean;
  readonly settings: PolicySettings;
}

const partsStatement = {
  name: 'policy_parts',
  text: `with part as (
      select subnet, bool_or(of_holder) as of_holder from (
        select p.subnet, false as of_holder from detection_policy p where p.subnet << $1::cidr
        union all select s.subnet, true from subnet s where s.role = 'user' and s.subnet << $1::cidr
      ) inside group by subnet
    )
    select ${subnetText('part.subnet')} as dst, part.of_holder as "isHolders", narrowest.settings
    from part left join lateral (
      select p.settings from detection_policy p left join account a on a.uuid = p.account_uuid
      where (p.account_uuid is null and p.subnet is null) or p.subnet >>= part.subnet
        or exists (select from subnet s where s.account_uuid = p.account_uuid and s.subnet >>= part.subnet)
      order by ${narrowestFirst('part.subnet')} limit 1
    ) narrowest on true
    order by part.subnet`,
};

/** What lies inside a subnet that somebody holds by himself or that a policy is for, with what is in force there. */
export async function loadPolicyParts(executor: Executor, dst: string): Promise<PartInForce[]> {
  const rows = await executor.rows<Omit<PartInForce, 'settings'> & { readonly settings: PolicySettings | null }>(
    partsStatement,
    [dst],
  );
  return rows.map((row) => ({ ...row, settings: row.settings ?? policyDefaults }));
}

/** Beside thresholds the narrowest policy says everything; without any it is as an installation begins. */
export async function mitigationPolicy(
  executor: Executor,
  dst: string,
): Promise<Pick<PolicySettings, 'mitigation' | 'mitigation_hold_s' | 'override_accept' | 'allow_rtbh'>> {
  const [narrowest] = await policiesInForce(executor, dst);
  return narrowest?.settings ?? policyDefaults;
}
