/**
 * From the bytes of a body to a JSON value. Refuses what is not UTF-8, not JSON (RFC 8259), or holds a member name
 * that could reach an object's prototype. Never checks what the value means.
 */
import { isUtf8 } from 'node:buffer';
import type { Problem } from '@levee/contract/errors.ts';

export type JsonBody =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: Problem };

/** Deeper nesting has no use in any body and costs the checks that follow. */
const depthMaximum = 64;
/** More in one object have no use either, and each would cost every check that follows. */
const membersMaximum = 256;

const refused = (message: string): JsonBody => ({ ok: false, problem: { field: '', code: 'invalid_json', message } });

/** An empty body is no value: `undefined`. */
export function parseJsonBody(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return { ok: true, value: undefined };
  if (!isUtf8(bytes)) return refused('The body is not UTF-8; JSON is sent as UTF-8.');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    return refused('The body is not a valid JSON text.');
  }
  const fault = faultOf(value);
  return fault === undefined ? { ok: true, value } : refused(fault);
}

/** Without recursion: nesting is the sender's to choose. */
function faultOf(root: unknown): string | undefined {
  if (typeof root !== 'object' || root === null) return undefined;
  let level: object[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === depthMaximum) return `The body is nested deeper than ${depthMaximum} levels.`;
    const next: object[] = [];
    for (const holder of level) {
      if (Array.isArray(holder)) {
        for (const item of holder) if (typeof item === 'object' && item !== null) next.push(item);
        continue;
      }
      let members = 0;
      for (const name in holder) {
        if (++members > membersMaximum) return `The body holds an object of more than ${membersMaximum} members.`;
        if (name === '__proto__') return 'The body holds a member named "__proto__", which is refused.';
        const item = (holder as Record<string, unknown>)[name];
        if (typeof item !== 'object' || item === null) continue;
        if (name === 'constructor' && Object.hasOwn(item, 'prototype')) {
          return 'The body holds a member named "constructor" with a "prototype", which is refused.';
        }
        next.push(item);
      }
    }
    level = next;
  }
  return undefined;
}
