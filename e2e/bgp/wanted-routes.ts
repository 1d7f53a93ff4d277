/** Flowrules of every component and every action, of both families, and the form in which two texts of one can be compared. */
import assert from 'node:assert/strict';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import type { SeenRoute } from '@levee/lab/bgp/bird-flow-text.ts';

export type Fields = Readonly<Record<string, unknown>>;

export const ofFour: Fields[] = [
  { dst: '198.18.0.5', components: {}, action: 'discard' },
  {
    dst: '198.18.1.0/24',
    components: {
      'source-prefix': '198.51.100.0/22',
      protocol: 'tcp',
      'destination-port': '80,443,1000-2000',
      'tcp-flags': 'syn&!ack&!rst,rst&fin,!psh&!urg',
      dscp: '0-10,46',
      fragment: '!is-fragment',
    },
    action: 'rate-limit',
    ratelimit: 125_000,
  },
  {
    dst: '198.18.0.6',
    components: { protocol: 'udp', 'source-port': '53,123', 'packet-length': '1000-65535' },
    action: 'redirect',
    redirect_target: '64500:666',
  },
  {
    dst: '198.18.0.6',
    components: { protocol: 'icmp', 'icmp-type': '0,8', 'icmp-code': '0-255' },
    action: 'redirect',
    redirect_target: '192.0.2.1:666',
  },
  {
    dst: '198.18.0.7',
    components: { port: '0-65535', fragment: 'dont-fragment&last-fragment,is-fragment&!first-fragment' },
    action: 'redirect',
    redirect_target: '4200000000:666',
  },
  { dst: '198.18.0.8', components: { protocol: '0-5,udp,200-255' }, action: 'mark', mark_dscp: 46 },
];
export const ofSix: Fields[] = [
  { dst: '2001:db8:2::/47', components: {}, action: 'discard' },
  {
    dst: '2001:db8::1',
    components: {
      'source-prefix': '2001:db9:1::5',
      protocol: 'ipv6-icmp',
      'icmp-type': '128',
      'icmp-code': '0',
      'packet-length': '0-99',
      dscp: '46',
      fragment: 'is-fragment&!first-fragment,last-fragment',
      'flow-label': '5-1000000',
    },
    action: 'rate-limit',
    ratelimit: 16_777_216,
  },
  { dst: '2001:db8::2', components: { protocol: 'tcp', 'tcp-flags': 'syn' }, action: 'mark', mark_dscp: 0 },
  {
    dst: '2001:db8::3',
    components: { protocol: 'udp', port: '1', 'destination-port': '2', 'source-port': '3' },
    action: 'redirect',
    redirect_target: '1:4294967295',
  },
];

/** In a flowrule's own form, sorted. */
export function canonical(routes: readonly (Fields | SeenRoute)[]): string[] {
  return routes
    .map((route) => {
      const parsed = parseFlowrule(route);
      assert.ok(parsed.ok, JSON.stringify([route, parsed.ok ? '' : parsed.problems]));
      return JSON.stringify(parsed.canonical);
    })
    .sort();
}
