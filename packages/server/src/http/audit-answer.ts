/**
 * What an entry of the audit log shows to whom. The states before and after are JSON already and are spliced in as they
 * are. Of an actor who is neither the caller nor, for a provider, one of its users, the account alone is shown: not the
 * key, the address or the request.
 */
import type { Caller } from '../commands/caller.ts';
import type { AuditRow } from '../commands/list-audit.ts';

export function auditText(row: AuditRow, caller: Pick<Caller, 'accountUuid' | 'role'>): string {
  let text = `{"sequence":${row.sequence},"at":"${row.at.toISOString()}","operation":${JSON.stringify(row.operation)}`;
  text += `,"kind":"${row.kind}","object_uuid":"${row.object_uuid}"`;
  if (row.owner_uuid !== null) text += `,"owner_uuid":"${row.owner_uuid}"`;
  if (row.actor_uuid !== null) text += `,"actor":${actorText(row, caller)}`;
  if (row.before !== null) text += `,"before":${row.before}`;
  if (row.after !== null) text += `,"after":${row.after}`;
  return `${text}}`;
}

function actorText(row: AuditRow, caller: Pick<Caller, 'accountUuid' | 'role'>): string {
  let text = `{"uuid":"${row.actor_uuid}","role":"${row.actor_role}"`;
  // What a provider sees was done by itself, the operator, or one of its own users.
  const isOwn =
    caller.role === 'operator' ||
    row.actor_uuid === caller.accountUuid ||
    (caller.role === 'provider' && row.actor_role === 'user');
  if (!isOwn) return `${text}}`;
  if (row.key_uuid !== null) text += `,"api_key_uuid":"${row.key_uuid}"`;
  if (row.source !== null) text += `,"source":"${row.source}"`;
  if (row.request_id !== null) text += `,"request_id":${JSON.stringify(row.request_id)}`;
  return `${text}}`;
}
