/**
 * Keeps who did what, in the transaction that does it. Owns the shape of an entry and the statement; what counts as
 * before and after is each command's to say.
 */
import type { AuditKind } from '@levee/contract/schemas/audit.ts';
import type { Caller } from './caller.ts';
import type { Executor } from './executor.ts';
import type { StoredRow } from './stored-row.ts';

export interface Origin {
  /** The caller's address, as far as trusted proxies tell, without a zone; undefined on the unix socket. */
  readonly address: string | undefined;
  readonly requestId: string;
}

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

/** A stored object as the log has it: the wire's fields, its expiry, and the change that awaits confirmation. */
export function auditedObject(
  { fields, expires_ms }: Pick<StoredRow, 'fields' | 'expires_ms'>,
  changeUuid?: string,
): object {
  return {
    ...(JSON.parse(fields) as object),
    ...(expires_ms !== null && { expires_at: new Date(expires_ms).toISOString() }),
    ...(changeUuid !== undefined && { change_uuid: changeUuid }),
  };
}

/** One stored object's entry; a row that is absent says that the object was not there, or is there no more. */
export function objectEntry(
  kind: AuditKind,
  before: StoredRow | undefined,
  after: StoredRow | undefined,
  changeUuid?: string,
): AuditEntry {
  const row = after ?? before;
  if (row === undefined) throw new Error('an audit entry about nothing');
  return {
    kind,
    uuid: row.uuid,
    ownerUuid: row.owner_uuid,
    providerUuid: row.provider_uuid,
    before: before && auditedObject(before),
    after: after && auditedObject(after, changeUuid),
  };
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
