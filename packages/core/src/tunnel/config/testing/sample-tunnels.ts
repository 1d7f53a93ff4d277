/** Tunnels of every kind, for the tests of the formats: type × family outside, with IPv4 and IPv6 inside. Test code only. */
import { prefixFromTrusted } from '../../../net/prefix-text.ts';
import { sizesOf } from '../../mtu.ts';
import type { ConfigEnd, ConfigTunnel } from '../config-tunnel.ts';

function end(order: number, location: string, number: number, address: string): ConfigEnd {
  const low = 2 * number;
  return {
    location,
    router: `edge-${location}`,
    number,
    order,
    address,
    inner4: { router: `10.48.0.${low}`, customer: `10.48.0.${low + 1}` },
    inner6: {
      router: `fd6c:6576:6565::${low.toString(16)}`,
      customer: `fd6c:6576:6565::${(low + 1).toString(16)}`,
    },
  };
}

function sample(type: 'GRE' | 'Geneve', outer: 4 | 6, more: Partial<ConfigTunnel> = {}): ConfigTunnel {
  return {
    uuid: '0190a5d0-1111-7000-8000-000000000001',
    type,
    keyed: true,
    outer,
    endpoint: outer === 4 ? '198.51.100.9' : '2001:db8:900::9',
    ips: ['203.0.113.0/28', '203.0.113.77', '2001:db8:7::/48'].map(prefixFromTrusted),
    sizes: sizesOf(type, outer),
    tableNumber: 41,
    ends: [end(0, 'fra1', 41, outer === 4 ? '192.0.2.1' : '2001:db8:ffff::1')],
    ...more,
  };
}

export const sampleTunnels: Readonly<Record<string, ConfigTunnel>> = {
  'gre-v4': sample('GRE', 4),
  'gre-v6': sample('GRE', 6),
  'geneve-v4': sample('Geneve', 4),
  'geneve-v6': sample('Geneve', 6),
  'unkeyed-v4': sample('GRE', 4, { keyed: false }),
  'unkeyed-v6': sample('GRE', 6, { keyed: false }),
  'two-ends': sample('GRE', 4, { ends: [end(0, 'fra1', 41, '192.0.2.1'), end(1, 'ams1', 42, '192.0.2.2')] }),
  'v4-inside': sample('Geneve', 4, { ips: [prefixFromTrusted('203.0.113.0/28')] }),
  'v6-inside': sample('GRE', 4, { ips: [prefixFromTrusted('2001:db8:7::/48')] }),
  'single-address': sample('Geneve', 6, { ips: [prefixFromTrusted('203.0.113.77')] }),
};
