/**
 * Follows the control plane's stream of desired state: resumes at the cursor and puts snapshots together. Hands on whole
 * snapshots and changes only; keeps no objects beyond a snapshot that is still arriving.
 */
import type { AgentHello, AgentTunnel } from '@levee/contract/agent.ts';
import type { Endpoint } from '@levee/follow/endpoint.ts';
import { followLines, type Stream } from '@levee/follow/follow-lines.ts';
import type { KeyAlarm } from '@levee/follow/key-alarm.ts';
import type { Logger } from 'pino';
import type { AgentEntry, AgentObjects } from '../state/objects.ts';
import { parseMessage } from './message.ts';

/** A thousand rules a line are half a megabyte; a change of a hundred thousand at once still fits. */
const longestLineBytes = 64 << 20;

export interface StreamOptions {
  readonly endpoints: readonly Endpoint[];
  readonly key: string;
  readonly silenceMilliseconds: number;
  readonly reconnectMilliseconds: number;
  readonly logger: Logger;
  readonly keyAlarm: KeyAlarm;
  /** Everything up to here has been handed on; undefined asks for a snapshot. */
  cursor(): string | undefined;
  hello(hello: AgentHello, endpoint: Endpoint): void;
  snapshot(cursor: string, objects: AgentObjects): void;
  /** `remove`: uuids of objects of any kind. */
  changes(cursor: string, upsert: AgentObjects, remove: readonly string[]): void;
}

export function followStream(options: StreamOptions): Stream {
  return followLines({
    ...options,
    longestLineBytes,
    trouble: 'not connected to the control plane; the rules in force stay',
    open(endpoint, greeted) {
      const cursor = options.cursor();
      return {
        path: `/agent/v1/stream${cursor === undefined ? '' : `?after=${encodeURIComponent(cursor)}`}`,
        take: createTaker(options, endpoint, cursor !== undefined, greeted),
      };
    },
  });
}

/** All that this release follows. */
const kindsTold = ['rules', 'filters', 'tunnels'] as const;

/**
 * Handles the messages of one connection in order; says what is wrong with one, where something is. `resumed`: it was
 * asked for from a cursor on.
 */
function createTaker(
  options: StreamOptions,
  endpoint: Endpoint,
  resumed: boolean,
  onHello: () => void,
): (line: Buffer) => string | undefined {
  let arriving: { entries: AgentEntry[]; tunnels: AgentTunnel[] } | undefined;
  let greeted = false;
  let based = resumed;
  let complete = false;
  return (line) => {
    const parsed = parseMessage(line);
    if (!parsed.ok) return parsed.reason;
    const message = parsed.message;
    if (message === undefined) return undefined;
    if (message.type === 'hello') {
      greeted = true;
      complete = kindsTold.every((kind) => message.tells?.includes(kind));
      onHello();
      options.hello(message, endpoint);
      return undefined;
    }
    if (!greeted) return 'the stream does not begin with hello';
    switch (message.type) {
      case 'heartbeat':
        return undefined;
      case 'snapshot_begin':
        arriving = { entries: [], tunnels: [] };
        return undefined;
      case 'rules':
        if (arriving === undefined) return 'rules outside of a snapshot';
        for (const rule of message.rules) arriving.entries.push(rule);
        return undefined;
      case 'filters':
        if (arriving === undefined) return 'filters outside of a snapshot';
        for (const filter of message.filters) arriving.entries.push(filter);
        return undefined;
      case 'tunnels':
        if (arriving === undefined) return 'tunnels outside of a snapshot';
        for (const tunnel of message.tunnels) arriving.tunnels.push(tunnel);
        return undefined;
      case 'snapshot_end': {
        if (arriving === undefined) return 'the end of a snapshot that did not begin';
        const objects = { ...arriving, complete };
        arriving = undefined;
        based = true;
        options.snapshot(message.cursor, objects);
        return undefined;
      }
      case 'changes': {
        if (arriving !== undefined) return 'changes inside of a snapshot';
        if (!based) return 'changes before the first snapshot';
        const entries = [...message.upsert, ...(message.filters ?? [])];
        options.changes(message.cursor, { entries, tunnels: message.tunnels ?? [], complete }, message.remove);
        return undefined;
      }
    }
  };
}
