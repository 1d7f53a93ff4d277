/**
 * Writes the agent stream's messages as lines. The stored fields of rules and filters are JSON already and are spliced
 * in; only a rule with a description is parsed, to leave it out. Tunnels are few, and are parsed.
 */
import type { AgentCursor, AgentHeartbeat, AgentHello, AgentTunnel } from '@levee/contract/agent.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import type { ChangesSince, PresentObject } from '../store/change-log.ts';
import type { PresentTunnel } from '../store/present-tunnels.ts';
import type { SnapshotChunk } from '../store/snapshot.ts';

function objectText(object: PresentObject): string {
  return `{"uuid":"${object.uuid}","sequence":${object.sequence},${withoutDescription(object.fields).slice(1)}`;
}

function withoutDescription(fields: string): string {
  if (!fields.includes('"descr"')) return fields;
  const { descr: _, ...rest } = JSON.parse(fields) as Record<string, unknown>;
  return JSON.stringify(rest);
}

function tunnelText({ uuid, sequence, fields, ...end }: PresentTunnel): string {
  const { type, keyed, ips, endpoint } = JSON.parse(fields) as CanonicalTunnel;
  const { local_endpoint, number, inner_ipv4, inner_ipv6 } = end;
  return JSON.stringify({
    uuid,
    sequence,
    type,
    ...(keyed === false && { keyed }),
    ips: [...ips],
    endpoint,
    local_endpoint,
    number,
    inner_ipv4,
    inner_ipv6,
  } satisfies AgentTunnel);
}

export function helloLine(router: AgentHello['router'], heartbeatSeconds: number): Buffer {
  return line({
    type: 'hello',
    router,
    heartbeat_s: heartbeatSeconds,
    tells: ['rules', 'filters', 'tunnels'],
  } satisfies AgentHello);
}

export const heartbeatLine = line({ type: 'heartbeat' } satisfies AgentHeartbeat);
export const snapshotBeginLine = line({ type: 'snapshot_begin' });

export function chunkLine(chunk: SnapshotChunk): Buffer {
  if (chunk.kind === 'tunnel') return listLine('tunnels', chunk.objects.map(tunnelText));
  return listLine(chunk.kind === 'filter' ? 'filters' : 'rules', chunk.objects.map(objectText));
}

function listLine(type: 'rules' | 'filters' | 'tunnels', texts: readonly string[]): Buffer {
  return Buffer.from(`{"type":"${type}","${type}":[${texts.join(',')}]}\n`);
}

export function snapshotEndLine(cursor: AgentCursor): Buffer {
  return line({ type: 'snapshot_end', cursor });
}

/** A change as all routers get it that have none of its tunnels; `lineWith` makes that of one which has some. */
export interface SharedChange {
  readonly line: Buffer;
  /** `own`: of the change's tunnels, those that the router has an end of. */
  lineWith(own: readonly PresentTunnel[]): Buffer;
}

export function sharedChange(
  { upsert, remove, tunnels }: Pick<ChangesSince, 'upsert' | 'remove' | 'tunnels'>,
  cursor: AgentCursor,
): SharedChange {
  const texts = (kind: PresentObject['kind']) =>
    [...upsert.values()].filter((object) => object.kind === kind).map(objectText);
  const filters = texts('filter');
  const head = `{"type":"changes","cursor":"${cursor}","upsert":[${texts('firewall_rule').join(',')}]${
    filters.length > 0 ? `,"filters":[${filters.join(',')}]` : ''
  }`;
  const end = (gone: readonly string[]) => `,"remove":${JSON.stringify([...remove, ...gone])}}\n`;
  return {
    line: Buffer.from(head + end([...tunnels])),
    lineWith(own) {
      const had = new Set(own.map(({ uuid }) => uuid));
      const gone = [...tunnels].filter((uuid) => !had.has(uuid));
      return Buffer.from(`${head},"tunnels":[${own.map(tunnelText).join(',')}]${end(gone)}`);
    },
  };
}

function line(message: object): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`);
}
