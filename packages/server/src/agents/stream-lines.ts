/**
 * Writes the agent stream's messages as lines. A rule's stored fields are JSON already and are spliced in; only a rule
 * with a description is parsed, to leave it out.
 */
import type { AgentCursor, AgentHeartbeat, AgentHello } from '@levee/contract/agent.ts';
import type { ChangesSince, PresentRule } from '../store/change-log.ts';

export function ruleText(rule: PresentRule): string {
  return `{"uuid":"${rule.uuid}","sequence":${rule.sequence},${withoutDescription(rule.fields).slice(1)}`;
}

function withoutDescription(fields: string): string {
  if (!fields.includes('"descr"')) return fields;
  const { descr: _, ...rest } = JSON.parse(fields) as Record<string, unknown>;
  return JSON.stringify(rest);
}

export function helloLine(router: AgentHello['router'], heartbeatSeconds: number): Buffer {
  return line({ type: 'hello', router, heartbeat_s: heartbeatSeconds } satisfies AgentHello);
}

export const heartbeatLine = line({ type: 'heartbeat' } satisfies AgentHeartbeat);
export const snapshotBeginLine = line({ type: 'snapshot_begin' });

export function rulesLine(rules: readonly PresentRule[]): Buffer {
  return Buffer.from(`{"type":"rules","rules":[${rules.map(ruleText).join(',')}]}\n`);
}

export function snapshotEndLine(cursor: AgentCursor): Buffer {
  return line({ type: 'snapshot_end', cursor });
}

export function changesLine(changes: Pick<ChangesSince, 'upsert' | 'remove'>, cursor: AgentCursor): Buffer {
  const upsert = [...changes.upsert.values()].map(ruleText).join(',');
  return Buffer.from(
    `{"type":"changes","cursor":"${cursor}","upsert":[${upsert}],"remove":${JSON.stringify(changes.remove)}}\n`,
  );
}

function line(message: object): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`);
}
