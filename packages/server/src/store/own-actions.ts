/**
 * What the service does of its own, for the audit log: no actor, and a word in place of an operation's id. What accounts
 * do is `commands/audit.ts`'s to keep. Runs inside the transaction of what it tells of.
 */
import type pg from 'pg';
import type { Statements } from './change-log.ts';

export type OwnAction = 'expire' | 'undo' | 'install' | 'enrol' | 'disable' | 'silence' | 'mitigate';

/**
 * SQL for a stored object as the audit log has it: the wire's fields, and the expiry where there is one. `fields` and
 * `expires_at` are columns.
 */
export function auditedText(fields: string, expiresAt: string): string {
  const moment = `to_char(${expiresAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return `case when ${expiresAt} is null then ${fields}
      else (left(${fields}::text, -1) || ',"expires_at":"' || ${moment} || '"}')::json end`;
}

export interface OwnEntry {
  readonly action: OwnAction;
  readonly kind: string;
  readonly uuid: string;
  readonly ownerUuid?: string;
  readonly providerUuid?: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Throws what the driver throws. */
export async function recordOwnAction(db: Statements, entry: OwnEntry): Promise<void> {
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  await (db as pg.ClientBase).query({
    name: 'audit_own_action',
    text: `insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid, before, after)
      values ($1, $2, $3, $4, $5, $6, $7)`,
    values: [
      entry.action,
      entry.kind,
      entry.uuid,
      entry.ownerUuid ?? null,
      entry.providerUuid ?? null,
      json(entry.before),
      json(entry.after),
    ],
  });
}
