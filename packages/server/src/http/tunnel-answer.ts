/**
 * What a tunnel's answer has beyond every stored object's: what each end has to be set to, its state there, and how the
 * customer's end answers. A tunnel
 * is asked about on the routers that have an end of it alone.
 */
import type { TunnelProbe } from '@levee/contract/schemas/tunnel.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { innerAddresses } from '@levee/core/tunnel/allocation.ts';
import { sizesOf } from '@levee/core/tunnel/mtu.ts';
import { summarise } from '@levee/core/tunnel/probe-window.ts';
import { type CanonicalTunnel, geneveUdpPort, type TunnelType } from '@levee/core/tunnel/tunnel.ts';
import { familyOf } from '../commands/judge-tunnel.ts';
import type { ProbeRow, TunnelEndRow, TunnelRow } from '../commands/tunnel-row.ts';
import { type AppliedStates, type ObjectState, type RenderedObject, renderStored, timeText } from './object-answer.ts';

/** What a router's agent must be able to do, and which routers are concerned. */
export function tunnelScope({ type, ends }: Pick<TunnelRow, 'type' | 'ends'>) {
  return { needs: needs[type], routers: new Set(ends.map((end) => end.router)) } as const;
}

const needs: Readonly<Record<TunnelType, { readonly capability: string; readonly words: string }>> = {
  GRE: { capability: 'tunnel:GRE', words: 'GRE tunnels' },
  Geneve: { capability: 'tunnel:Geneve', words: 'Geneve tunnels' },
};

export function renderTunnel(row: TunnelRow, states: AppliedStates): RenderedObject {
  const derived = stateOf(row, states);
  const information = row.ends.map((end) => informationOf(row, end, derived));
  return renderStored(row, derived, `,"tunnel_information":${JSON.stringify(information)}`);
}

function stateOf(row: TunnelRow, states: AppliedStates): ObjectState {
  const fields = JSON.parse(row.fields) as CanonicalTunnel;
  const family = familyOf(row.endpoint);
  if (row.ends.length === 0) {
    const where = fields.locations === undefined ? '' : ` at ${fields.locations.join(', ')}`;
    const but = fields.keyed === false ? ' to which the endpoint has no other tunnel without key' : '';
    const reason = `No router${where} has an IPv${family} tunnel address${but}: nothing ends the tunnel yet.`;
    return { state: 'pending', reason, applied: [] };
  }
  const derived = states.stateOf({
    uuid: row.uuid,
    change: { xid: row.change_xid, position: row.change_position },
    changedMilliseconds: row.updated_ms,
    deleted: row.deleted,
    ...tunnelScope(row),
  });
  const served = new Set(row.ends.map((end) => end.location));
  const unserved = fields.locations?.find((name) => !served.has(name));
  if (derived.state !== 'active' || unserved === undefined || row.deleted) return derived;
  // It had a router when it was asked for, and the router was removed since.
  const reason = `${unserved}: no router there has an IPv${family} tunnel address any more`;
  return { ...derived, state: 'pending', reason };
}

function informationOf(row: TunnelRow, end: TunnelEndRow, derived: ObjectState): object {
  const { mtu, mss, mssIpv6 } = sizesOf(row.type, familyOf(row.endpoint));
  const keyed = !row.fields.includes('"keyed":false');
  return {
    location: end.location,
    router: end.router,
    local_endpoint: end.local_endpoint,
    remote_endpoint: row.endpoint,
    inner_ipv4: innerOf(end.inner_ipv4),
    inner_ipv6: innerOf(end.inner_ipv6),
    ...(row.type === 'GRE' && keyed && { key: end.number }),
    ...(row.type === 'Geneve' && { vni: end.number, udp_port: geneveUdpPort }),
    mtu,
    mss,
    mss_ipv6: mssIpv6,
    ...stateThere(row, end, derived),
    ...probeOf(end.probe),
  };
}

function probeOf(probe: ProbeRow | null): { readonly probe?: TunnelProbe } {
  const summary = probe === null ? undefined : summarise(probe.minutes);
  if (probe === null || summary === undefined) return {};
  return {
    probe: {
      ...(summary.rtt !== undefined && { rtt_ms: summary.rtt }),
      loss_percent: summary.lossPercent,
      ...(probe.last_answer_ms !== null && { last_answer_at: timeText(probe.last_answer_ms) }),
      at: timeText(probe.at_ms),
    },
  };
}

function innerOf(text: string): object {
  const pair = prefixFromTrusted(text);
  const { router, customer } = innerAddresses(pair);
  return { router: formatAddress(router), customer: formatAddress(customer), prefix_length: pair.length };
}

function stateThere(row: TunnelRow, end: TunnelEndRow, derived: ObjectState): object {
  if (row.deleted) return { state: 'marked_for_deletion' };
  const entry = derived.applied.find((each) => each.router === end.router);
  if (entry === undefined) return { state: 'pending', state_reason: 'the router has not been enrolled yet' };
  return { state: entry.state, ...(entry.reason !== undefined && { state_reason: entry.reason }) };
}
