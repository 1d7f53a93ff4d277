/**
 * What a built packet is to the evaluator. Reads the description of the packet, never its bytes, and never a rule.
 */
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { PacketType } from '@levee/core/firewall/rule.ts';
import { buildFrame, leastLength } from '@levee/lab/packet-build.ts';
import { extensionNumber, type PacketSpec, protocolNumber, transportNumber } from '@levee/lab/packet-spec.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';
import { payloadBytes, transportHeaderBytes } from '@levee/lab/transport-build.ts';

const ethernetBytes = 14;

export function describePacket(spec: PacketSpec): Packet {
  const extensions = (spec.extensions ?? []).map((header) => extensionNumber[header.kind]);
  const totalLengthBytes = buildFrame(spec).length - ethernetBytes;
  const base = {
    family: spec.family,
    source: spec.source,
    destination: spec.destination,
    totalLengthBytes,
    packetType: packetTypeOf(spec.destinationHardware),
    ...(spec.fragment && { fragment: { offsetBytes: spec.fragment.offset, more: spec.fragment.more } }),
  };
  if (spec.family === 4) {
    const later = spec.fragment !== undefined && spec.fragment.offset > 0;
    // AH in IPv4 is the protocol; what it protects is not looked for.
    const upperProtocol = extensions[0] ?? transportNumber(4, spec.transport);
    return {
      ...base,
      upperProtocol,
      extensionHeaders: [],
      ...(extensions.length === 0 && !later && transportFacts(spec)),
    };
  }
  const inEvery: number[] = extensions.filter(
    (number) => number === protocolNumber.hopByHop || number === protocolNumber.routing,
  );
  const behind = extensions.filter((number) => !inEvery.includes(number));
  const later = spec.fragment !== undefined && spec.fragment.offset > 0;
  if (later) {
    const extensionHeaders = [...inEvery, protocolNumber.fragment];
    const named = behind[0] ?? transportNumber(6, spec.transport);
    const shown = behind.length === 0 || named === protocolNumber.authentication;
    return { ...base, extensionHeaders, ...(shown && { upperProtocol: named }) };
  }
  const chain = [...inEvery, ...(spec.fragment ? [protocolNumber.fragment] : []), ...behind];
  // Nobody on the way looks for a transport behind an authentication header: it is what the packet carries.
  if (chain.includes(protocolNumber.authentication)) {
    const extensionHeaders = chain.filter((number) => number !== protocolNumber.authentication);
    return { ...base, upperProtocol: protocolNumber.authentication, extensionHeaders };
  }
  return {
    ...base,
    upperProtocol: transportNumber(6, spec.transport),
    extensionHeaders: chain,
    ...transportFacts(spec),
  };
}

/** Ports, flags, options and payload as far as the packet reaches. */
function transportFacts(spec: PacketSpec): Partial<Packet> {
  const { transport } = spec;
  const kept = spec.keepPayloadBytes ?? Number.POSITIVE_INFINITY;
  const header = transportHeaderBytes(transport);
  const payload = () => {
    const whole = payloadBytes(spec, (spec.totalLength ?? leastLength(spec)) - leastLength(spec) + header);
    return { payload: whole.subarray(0, Math.max(0, kept - header)) };
  };
  if (transport.kind === 'icmp') {
    return { ...(kept >= 3 && { icmpType: transport.type, icmpCode: transport.code }), ...payload() };
  }
  if (!('sourcePort' in transport)) return {};
  return {
    ...(['tcp', 'udp', 'udplite'].includes(transport.kind) && payload()),
    // The compiler reads it with one octet more (nftables/rule-text.ts says why).
    ...(kept >= 3 && { sourcePort: transport.sourcePort }),
    ...(kept >= 4 && { destinationPort: transport.destinationPort }),
    ...(transport.kind === 'tcp' && kept >= 14 && { tcpFlags: transport.flags }),
    ...(transport.kind === 'tcp' &&
      kept >= header && {
        tcpOptionKinds: optionKinds(transport.options ?? new Uint8Array()),
      }),
  };
}

/** RFC 9293, 3.1: kind 0 ends the list, kind 1 is one octet, the others say their length. */
function optionKinds(options: Uint8Array): number[] {
  const kinds: number[] = [];
  for (let at = 0; at < options.length; ) {
    const kind = options[at] as number;
    if (kind === 0) break;
    kinds.push(kind);
    at += kind === 1 ? 1 : Math.max(2, options[at + 1] ?? 2);
  }
  return kinds;
}

function packetTypeOf(hardware: string): PacketType {
  if (hardware === 'ff:ff:ff:ff:ff:ff') return 'broadcast';
  if ((Number.parseInt(hardware.slice(0, 2), 16) & 1) === 1) return 'multicast';
  const router: readonly string[] = [hardwareAddress.routerOutside, hardwareAddress.routerInside];
  return router.includes(hardware) ? 'host' : 'other';
}

/**
 * What comes back to the sender of a rejected packet. `any`: the kernel answers some such packets only (it verifies
 * a checksum that a fragment, a packet cut short, or bytes of an unknown protocol need not have).
 */
export type Answer = 'reset' | 'unreachable' | 'none' | 'any';

export function answerToRejected(spec: PacketSpec): Answer {
  if (packetTypeOf(spec.destinationHardware) !== 'host') return 'none';
  if (spec.fragment !== undefined) return spec.fragment.offset > 0 ? 'none' : 'any';
  if (spec.keepPayloadBytes !== undefined) return 'any';
  if (spec.extensions?.some((header) => header.kind === 'authentication')) return 'any';
  const { transport } = spec;
  switch (transport.kind) {
    case 'tcp':
      return (transport.flags & 0x04) !== 0 ? 'none' : 'reset'; // RFC 9293, 3.10.7.1: no reset for a reset
    case 'icmp':
      return isIcmpError(spec.family, transport.type) ? 'none' : 'unreachable'; // RFC 1122 3.2.2, RFC 4443 2.4
    case 'raw':
      return 'any';
    case 'dccp':
      // For IPv4 the kernel verifies DCCP without its pseudo-header (nf_ip_checksum), and finds it wrong.
      return spec.family === 4 ? 'any' : 'unreachable';
    default:
      return 'unreachable';
  }
}

/** Or, for IPv4, a type of which the kernel does not know that it is none (icmp_pointers of net/ipv4/icmp.c). */
function isIcmpError(family: 4 | 6, type: number): boolean {
  return family === 6 ? type < 128 : ![0, 8, 13, 14, 15, 16, 17, 18].includes(type);
}
