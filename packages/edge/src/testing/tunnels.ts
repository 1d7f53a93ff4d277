/** Tunnels for the edge's tests, in the form in which the control plane sends them. */
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { uuidOf } from './rules.ts';

/** GRE, unless told otherwise, for the n-th subnet. */
export function tunnelOf(n: number, fields: Partial<AgentTunnel> = {}): AgentTunnel {
  return {
    type: 'GRE',
    ips: [`10.200.${n & 255}.0/24`],
    endpoint: `198.51.100.${1 + (n & 127)}`,
    local_endpoint: '203.0.113.1',
    number: n,
    inner_ipv4: `10.255.${n & 255}.0/31`,
    inner_ipv6: `fd00:0:0:${n.toString(16)}::/127`,
    ...fields,
    uuid: uuidOf(n),
    sequence: n,
  };
}
