/** Filters for the edge's tests, in the form in which the control plane sends them. */
import type { AgentFilter } from '@levee/contract/agent.ts';
import { uuidOf } from './rules.ts';

export const dnsKind = 22;

/** For DNS servers, unless told otherwise; the n-th destination of 10.0.0.0/8, as `ruleOf` has it. */
export function filterOf(n: number, fields: Partial<AgentFilter> = {}): AgentFilter {
  return {
    dst: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
    filter: dnsKind,
    priority: 1000,
    ...fields,
    uuid: uuidOf(n),
    sequence: n,
  };
}
