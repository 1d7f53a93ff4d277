/**
 * One line of the stream, from bytes to a message: checks what this end relies on (names, cursors, lists), and leaves
 * the fields of an object to whoever enforces it. Throws nothing.
 */
import type { AgentMessage } from '@levee/contract/agent.ts';

export type ParsedMessage =
  | { readonly ok: true; readonly message: AgentMessage }
  /** A type that this release does not know: a newer control plane may say more. */
  | { readonly ok: true; readonly message: undefined }
  | { readonly ok: false; readonly reason: string };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What names and orders an object of any kind. */
function isNamed(value: unknown): value is Record<string, unknown> {
  return (
    isObject(value) && typeof value.uuid === 'string' && value.uuid.length <= 64 && Number.isSafeInteger(value.sequence)
  );
}

/** Rules and filters go on in one list, told apart by that field. */
const isRule = (value: unknown): boolean => isNamed(value) && !('filter' in value);
const isFilter = (value: unknown): boolean => isNamed(value) && Number.isSafeInteger(value.filter);

const isListOf = (value: unknown, fits: (each: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(fits);
const isAbsentOr = (value: unknown, fits: (each: unknown) => boolean): boolean =>
  value === undefined || isListOf(value, fits);
const isText = (value: unknown): boolean => typeof value === 'string';
/** Opaque to a router: what may stand in a query and in a file, of a bounded length, and no more is asked. */
const isCursor = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9A-Za-z._-]{1,100}$/.test(value);

export function parseMessage(line: Buffer): ParsedMessage {
  let value: unknown;
  try {
    value = JSON.parse(line.toString());
  } catch {
    return { ok: false, reason: 'a line is not JSON' };
  }
  if (!isObject(value) || typeof value.type !== 'string') return { ok: false, reason: 'a line is not a message' };
  const fits = shapes[value.type];
  if (fits === undefined) return { ok: true, message: undefined };
  if (!fits(value)) return { ok: false, reason: `a ${value.type} message is malformed` };
  return { ok: true, message: value as unknown as AgentMessage };
}

const shapes: Record<string, (value: Record<string, unknown>) => boolean> = {
  hello: (value) =>
    isObject(value.router) &&
    typeof value.router.uuid === 'string' &&
    typeof value.heartbeat_s === 'number' &&
    isAbsentOr(value.tells, isText),
  heartbeat: () => true,
  snapshot_begin: () => true,
  rules: (value) => isListOf(value.rules, isRule),
  filters: (value) => isListOf(value.filters, isFilter),
  tunnels: (value) => isListOf(value.tunnels, isNamed),
  snapshot_end: (value) => isCursor(value.cursor),
  changes: (value) =>
    isCursor(value.cursor) &&
    isListOf(value.upsert, isRule) &&
    isAbsentOr(value.filters, isFilter) &&
    isAbsentOr(value.tunnels, isNamed) &&
    isListOf(value.remove, isText),
};
