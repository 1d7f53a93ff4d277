/**
 * A packet as an exporter sampled it, decoded once: what it shows for people, and what it stands for. Owns the reading and the
 * words; judges nothing.
 */
import { formatAddress } from '../net/address.ts';
import { decodeSample } from './decode-packet.ts';
import type { Sample } from './judge-sample.ts';
import { portTransportNumbers, protocolText } from './protocol-traits.ts';
import { tcpFlagBits, tcpFlagNames } from './wire.ts';

export interface SampledPacket {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** How many packets it stands for. */
  readonly scale: number;
  /** IP total length of the packet as it was. */
  readonly length: number;
  /** Its first octets, from the IP header on. */
  readonly header: Uint8Array;
}

/** What a sample shows, in the words of rules. What it does not show is absent. */
export interface SampleSummary {
  readonly src?: string;
  readonly dst?: string;
  /** By its name where it has one, else its number. */
  readonly protocol?: string;
  readonly port?: { readonly src?: number; readonly dst?: number };
  readonly tcpflags?: readonly string[];
  readonly icmp?: { readonly type: number; readonly code: number };
  /** Of a packet that is one: how many octets lie before it. */
  readonly fragment_offset?: number;
}

/** Routers forward frames for themselves only; nothing of a sample says so. */
const surroundings = { packetType: 'host' } as const;

/** Undefined: what was sampled is no beginning of an IP packet. */
export function readSample({ header, length }: Pick<SampledPacket, 'header' | 'length'>): Sample | undefined {
  const decoded = decodeSample(header, length, surroundings);
  return decoded.ok ? decoded : undefined;
}

export function summarise({ packet }: Sample): SampleSummary {
  const { family, upperProtocol: protocol, sourcePort, destinationPort, tcpFlags, icmpType, icmpCode } = packet;
  const hasPorts = protocol !== undefined && portTransportNumbers.includes(protocol);
  const port = {
    ...(sourcePort !== undefined && { src: sourcePort }),
    ...(destinationPort !== undefined && { dst: destinationPort }),
  };
  return {
    src: formatAddress({ family, value: packet.source }),
    dst: formatAddress({ family, value: packet.destination }),
    ...(protocol !== undefined && { protocol: protocolText(protocol) }),
    ...(hasPorts && Object.keys(port).length > 0 && { port }),
    ...(tcpFlags !== undefined && { tcpflags: tcpFlagNames.filter((name) => (tcpFlags & tcpFlagBits[name]) !== 0) }),
    ...(icmpType !== undefined && icmpCode !== undefined && { icmp: { type: icmpType, code: icmpCode } }),
    ...(packet.fragment && { fragment_offset: packet.fragment.offsetBytes }),
  };
}
