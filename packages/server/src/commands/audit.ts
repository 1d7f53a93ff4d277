/**
 * Keeps who did what, in the transaction that does it. Owns the shape of an entry and the statement; what counts as
 * before and after is each command's to say.
 */
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';

export interface Origin {
  /** The caller's address, as far as trusted proxies tell, without a zone; undefined on the unix socket. */
  readonly address: string | undefined;
  readonly requestId: string;
}

/** Kinds of objects as their paths name them. */
export type AuditKind =
  | 'firewall_rule'
  | 'filter'
  | 'tunnel'
  | 'rdns'
  | 'rdns_zone'
  | 'attack'
  | 'flowrule'
  | 'account'
  | 'api_key'
  | 'webhook'
  | 'quota'
  | 'location'
  | 'router';

export interface AuditEntry {
  readonly kind: AuditKind;
  readonly uuid: string;
  /** Whose object it is; null: the installation's. */
  readonly ownerUuid: string | null;
  readonly providerUuid: string | null;
  /** As answered, without secrets. Absent before a creation, and after a deletion that left nothing. */
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface Actor {
  readonly caller: Pick<Caller, 'accountUuid' | 'role' | 'keyUuid'>;
  readonly origin: Origin;
  /** The operation's id in the contract. */
  readonly operation: string;
}

const saveStatement = {
  name: 'audit_save',
  text: `insert into audit (actor_uuid, actor_role, key_uuid, source, request_id, operation, kind, object_uuid, owner_uuid,
      provider_uuid, before, after)
    select $1, $2, $3, $4, $5, $6, e.kind, e.uuid, e.owner, e.provider, e.before::json, e.after::json
    from unnest($7::text[], $8::uuid[], $9::uuid[], $10::uuid[], $11::text[], $12::text[])
      with ordinality e (kind, uuid, owner, provider, before, after, place)
    order by e.place`,
};

export async function saveAudit(executor: Executor, actor: Actor, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  await executor.rows(saveStatement, [
    actor.caller.accountUuid,
    actor.caller.role,
    actor.caller.keyUuid,
    actor.origin.address ?? null,
    actor.origin.requestId,
    actor.operation,
    entries.map((entry) => entry.kind),
    entries.map((entry) => entry.uuid),
    entries.map((entry) => entry.ownerUuid),
    entries.map((entry) => entry.providerUuid),
    entries.map((entry) => json(entry.before)),
    entries.map((entry) => json(entry.after)),
  ]);
}
