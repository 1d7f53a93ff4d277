/**
 * A cursor as routers keep it: `<xid>.<position>.<log identity>`. Without the identity a router that was here before
 * the database was replaced would be taken to know what it never saw, and rules would be called active that no kernel
 * holds.
 */
import type { AgentCursor } from '@levee/contract/agent.ts';
import { type Cursor, formatCursor, parseCursor } from '../store/cursor.ts';

export interface WireCursors {
  write(cursor: Cursor): AgentCursor;
  /** `foreign`: another log's. Undefined: nothing that a control plane ever gave. */
  read(text: string): Cursor | 'foreign' | undefined;
}

/** @param identity of the log that is followed now: see store/log-identity.ts. */
export function createWireCursors(identity: () => string): WireCursors {
  return {
    write: (cursor) => `${formatCursor(cursor)}.${identity()}`,
    read(text) {
      const match = /^(\d+\.\d+)\.([0-9a-f]{10})$/.exec(text);
      const cursor = match?.[1] === undefined ? undefined : parseCursor(match[1]);
      if (cursor === undefined) return undefined;
      return match?.[2] === identity() ? cursor : 'foreign';
    },
  };
}
