/** Rules for the edge's tests, in the form in which the control plane sends them. */
import type { AgentRule } from '@levee/contract/agent.ts';

/** The n-th uuid, made up. */
export function uuidOf(n: number): string {
  return `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
}

/** A drop of one UDP port, unless told otherwise; the n-th destination of 10.0.0.0/8. */
export function ruleOf(n: number, fields: Partial<AgentRule> = {}): AgentRule {
  return {
    dst: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
    protocol: 'udp',
    action: 'drop',
    priority: 1000,
    port: { dst: { start: 53 } },
    disabled: false,
    ...fields,
    uuid: uuidOf(n),
    sequence: n,
  };
}
