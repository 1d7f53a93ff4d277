/**
 * One line of the stream, from bytes to a message: checks what this end relies on (names, cursors, lists), and leaves
 * the fields of a rule to the rule parser. Throws nothing.
 */
import type { AgentMessage, AgentRule } from '@levee/contract/agent.ts';

export type ParsedMessage =
  | { readonly ok: true; readonly message: AgentMessage }
  /** A type that this release does not know: a newer control plane may say more. */
  | { readonly ok: true; readonly message: undefined }
  | { readonly ok: false; readonly reason: string };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function isRule(value: unknown): value is AgentRule {
  return (
    isObject(value) && typeof value.uuid === 'string' && value.uuid.length <= 64 && Number.isSafeInteger(value.sequence)
  );
}

const isRules = (value: unknown): value is AgentRule[] => Array.isArray(value) && value.every(isRule);
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
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
    isObject(value.router) && typeof value.router.uuid === 'string' && typeof value.heartbeat_s === 'number',
  heartbeat: () => true,
  snapshot_begin: () => true,
  rules: (value) => isRules(value.rules),
  snapshot_end: (value) => isCursor(value.cursor),
  changes: (value) => isCursor(value.cursor) && isRules(value.upsert) && isTexts(value.remove),
};
