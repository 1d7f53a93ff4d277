/**
 * Makes a flowrule: what a BGP speaker is to announce, or may be told to. Whoever proposes it, its fields are judged
 * here, so that no malformed route and none outside protected space is ever stored. Its owner is who holds the
 * destination now, and stays so when the addresses go to another.
 */
import type { CanonicalFlowrule } from '@levee/core/flowspec/flowrule.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import type { HeldBy } from '@levee/core/mitigation/measure.ts';
import { newUuid } from '../store/new-uuid.ts';
import type { Executor } from './executor.ts';
import { type FlowruleRow, flowruleColumns } from './flowrule-row.ts';
import { done, type Outcome, refuse } from './outcome.ts';

export interface WantedFlowrule {
  /** The wire's fields: `dst`, `components`, `action` and what the action needs. */
  readonly fields: unknown;
  /** The attack that it came of. */
  readonly attackUuid?: string | undefined;
  /** Why it must not be announced: it stays `proposed`. */
  readonly held?: string | undefined;
  readonly expiresAt?: Date | undefined;
  /** Absent: a policy's, whose life is its own. */
  readonly measure?: FlowMeasureFields | undefined;
}

/** Of a measure that lives with its attack. */
export interface FlowMeasureFields {
  readonly purpose: string;
  readonly heldBy: HeldBy | undefined;
  /** The customer's rule that it is held for. */
  readonly heldRule: string | undefined;
  readonly overridesAccept: boolean;
  /** Rules changed by transactions before this one were looked at for what they accept. */
  readonly judgedXid: string;
}

/** A user's grant before its provider's prefix. The share of the prefix's row keeps it until this transaction ends. */
const holderStatement = {
  name: 'flowrule_holder',
  text: `select coalesce(u.account_uuid, p.account_uuid)::text as owner, p.account_uuid::text as provider, p.subnet::text as prefix
    from subnet p left join subnet u on u.role = 'user' and u.subnet >>= $1::cidr
    where p.role = 'provider' and p.subnet >>= $1::cidr for key share of p`,
};

const attackStatement = {
  name: 'flowrule_attack',
  text: 'select from attack where uuid = $1 and provider_uuid = $2 for key share',
};

const sameStatement = {
  name: 'flowrule_same',
  text: 'select uuid::text from flowrule where nlri = $1 and deletion_marked_at is null',
};

const createStatement = {
  name: 'flowrule_create',
  text: `with drawn as (select nextval('change_position') as position), created as (
      insert into flowrule (uuid, sequence, owner_uuid, provider_uuid, dst, prefix, attack_uuid, fields, nlri, held,
        created_at, updated_at, expires_at, change_position, origin, purpose, held_by, held_rule, overrides_accept, judged_xid)
      select $1, position, $2, $3, $4, $5, $6, $7, $8, $9, date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()), $10, position, $11, $12, $13, $14, $15, $16 from drawn
      returning *
    ), logged as (
      insert into change (position, kind, object_uuid) select change_position, 'flowrule', uuid from created
    )
    select ${flowruleColumns} from created r`,
};

/**
 * In a transaction. Refuses what is malformed, a destination that no provider holds, and a rule that stands already:
 * two with one match are one route with two actions. Throws the violated constraint (`flowrule_nlri`) when the same one
 * was proposed at the same time.
 */
export async function proposeFlowrule(executor: Executor, wanted: WantedFlowrule): Promise<Outcome<FlowruleRow>> {
  if (!executor.inTransaction) throw new Error('a flowrule is proposed outside a transaction');
  const parsed = parseFlowrule(wanted.fields);
  if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
  const { canonical } = parsed;
  const { dst } = canonical;
  const [holder] = await executor.rows<{ owner: string; provider: string; prefix: string }>(holderStatement, [dst]);
  if (holder === undefined) {
    const message = `dst: no provider of this installation holds ${dst}; it must lie inside one provider's prefix`;
    return refuse('validation_failed', { field: '/dst', code: 'not_protected', message });
  }
  const { attackUuid, measure } = wanted;
  if (attackUuid !== undefined && (await executor.rows(attackStatement, [attackUuid, holder.provider])).length === 0) {
    const message = `attack_uuid: there is no attack ${attackUuid} on the provider that holds ${dst}`;
    return refuse('not_found', { field: '/attack_uuid', code: 'not_found', message });
  }
  const nlri = nlriOf(canonical);
  const [same] = await executor.rows<{ uuid: string }>(sameStatement, [nlri]);
  if (same !== undefined) {
    const message = `components: the flowrule ${same.uuid} matches exactly this already`;
    return refuse('conflict', { field: '/components', code: 'already_exists', message });
  }
  const [row] = await executor.rows<FlowruleRow>(createStatement, [
    newUuid(),
    holder.owner,
    holder.provider,
    dst,
    holder.prefix,
    attackUuid ?? null,
    JSON.stringify(canonical),
    nlri,
    wanted.held ?? null,
    wanted.expiresAt ?? null,
    measure === undefined ? 'policy' : 'attack',
    measure?.purpose ?? null,
    measure?.heldBy ?? null,
    measure?.heldRule ?? null,
    measure?.overridesAccept ?? false,
    measure?.judgedXid ?? null,
  ]);
  if (row === undefined) throw new Error('an insert without a row');
  return done(row);
}

/** Equal for equal routes, whatever is done with what they match; a blackhole is a route of another kind. */
export function nlriOf({ dst, components, action }: CanonicalFlowrule): string {
  return JSON.stringify(action === 'blackhole' ? [dst] : [dst, components]);
}
