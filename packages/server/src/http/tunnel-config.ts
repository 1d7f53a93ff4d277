/** From a tunnel's row to the text that sets up the customer's end, or why there is none. Knows no format's syntax. */
import type { ConfigFormat } from '@levee/contract/schemas/tunnel.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { quote } from '@levee/core/problem.ts';
import { innerAddresses } from '@levee/core/tunnel/allocation.ts';
import type { ConfigEnd, ConfigTunnel, PairTexts } from '@levee/core/tunnel/config/config-tunnel.ts';
import { writeConfig } from '@levee/core/tunnel/config/write-config.ts';
import { sizesOf } from '@levee/core/tunnel/mtu.ts';
import type { CanonicalTunnel } from '@levee/core/tunnel/tunnel.ts';
import { familyOf } from '../commands/judge-tunnel.ts';
import { done, type Outcome, refuse } from '../commands/outcome.ts';
import type { TunnelEndRow, TunnelRow } from '../commands/tunnel-row.ts';

export interface ConfigQuery {
  readonly format: ConfigFormat;
  /** Absent: every end. */
  readonly location?: string | undefined;
}

export function configOf(row: TunnelRow, { format, location }: ConfigQuery): Outcome<string> {
  if (row.deleted) {
    const message = 'The tunnel is marked for deletion: there is nothing left to set up.';
    return refuse('conflict', { field: '', code: 'marked_for_deletion', message });
  }
  if (row.ends.length === 0) {
    const message = 'The tunnel has no end on a router yet: there is nothing to set up; state_reason says why.';
    return refuse('conflict', { field: '', code: 'no_ends', message });
  }
  const whole = configTunnel(row);
  const ends = location === undefined ? whole.ends : whole.ends.filter((end) => end.location === location);
  if (ends.length === 0) {
    const there = [...new Set(whole.ends.map((end) => end.location))].join(', ');
    const message = `location: the tunnel has no end at ${quote(location ?? '')}; it has at: ${there}`;
    return refuse('validation_failed', { field: '?location', code: 'not_allowed', message });
  }
  const written = writeConfig(format, { ...whole, ends });
  if (written.ok) return done(written.text);
  const message = `format: ${format} ${written.lacks}. This tunnel can be written as: ${written.instead.join(', ')}`;
  return refuse('validation_failed', { field: '?format', code: 'not_expressible', message });
}

function configTunnel(row: TunnelRow): ConfigTunnel {
  const { ips, keyed } = JSON.parse(row.fields) as CanonicalTunnel;
  const outer = familyOf(row.endpoint);
  const ends = row.ends.map(configEnd);
  return {
    uuid: row.uuid,
    type: row.type,
    keyed: keyed !== false,
    outer,
    endpoint: row.endpoint,
    ips: ips.map(prefixFromTrusted),
    sizes: sizesOf(row.type, outer),
    tableNumber: ends[0]?.number ?? 0,
    ends,
  };
}

function configEnd(end: TunnelEndRow, order: number): ConfigEnd {
  return {
    location: end.location,
    router: end.router,
    number: end.number,
    order,
    address: end.local_endpoint,
    inner4: pairTexts(end.inner_ipv4),
    inner6: pairTexts(end.inner_ipv6),
  };
}

function pairTexts(text: string): PairTexts {
  const { router, customer } = innerAddresses(prefixFromTrusted(text));
  return { router: formatAddress(router), customer: formatAddress(customer) };
}
