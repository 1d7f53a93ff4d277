/**
 * Whether a router that has a flowrule would apply it to a packet (RFC 8955, 4.2.2; RFC 8956, 3): read from the frame that was
 * sent. Must never ask what chose the rule: it is held to this.
 */
import type { FlagExpression } from '@levee/core/flowspec/flag-expression.ts';
import type { Flowrule } from '@levee/core/flowspec/flowrule.ts';
import { isInSet, type NumberSet } from '@levee/core/flowspec/number-set.ts';
import { prefixContainsAddress } from '@levee/core/net/prefix.ts';

/** What of a packet a flowrule may ask. Frames here have no extension header but IPv6's fragment header. */
export interface FramePacket {
  readonly family: 4 | 6;
  readonly source: bigint;
  readonly destination: bigint;
  readonly protocol: number;
  readonly length: number;
  readonly dscp: number;
  readonly flowLabel: number | undefined;
  /** By RFC 8955's names, as bits of its operand: 1 don't fragment, 2 later, 4 first, 8 last. */
  readonly fragment: number;
  /** Absent in later fragments, and where the protocol has none. */
  readonly ports: readonly [source: number, destination: number] | undefined;
  readonly tcpFlags: number | undefined;
  readonly icmp: readonly [type: number, code: number] | undefined;
}

const fragmentHeader = 44;

/** Undefined: the frame has no IP packet. */
export function readFrame(frame: Uint8Array): FramePacket | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset + 14, frame.length - 14);
  const ethertype = new DataView(frame.buffer, frame.byteOffset).getUint16(12);
  if (ethertype !== 0x0800 && ethertype !== 0x86dd) return undefined;
  const family = ethertype === 0x0800 ? 4 : 6;
  const wide = (at: number): bigint => (view.getBigUint64(at) << 64n) | view.getBigUint64(at + 8);
  let protocol = view.getUint8(family === 4 ? 9 : 6);
  let start = family === 4 ? (view.getUint8(0) & 15) * 4 : 40;
  let offset = 0;
  let more = false;
  if (family === 4) {
    offset = view.getUint16(6) & 0x1fff;
    more = (view.getUint16(6) & 0x2000) !== 0;
  } else if (protocol === fragmentHeader) {
    protocol = view.getUint8(start);
    offset = view.getUint16(start + 2) >> 3;
    more = (view.getUint16(start + 2) & 1) !== 0;
    start += 8;
  }
  const later = offset > 0;
  const hasPorts = !later && (protocol === 6 || protocol === 17);
  const dontFragment = family === 4 && (view.getUint16(6) & 0x4000) !== 0;
  return {
    family,
    source: family === 4 ? BigInt(view.getUint32(12)) : wide(8),
    destination: family === 4 ? BigInt(view.getUint32(16)) : wide(24),
    protocol,
    length: family === 4 ? view.getUint16(2) : view.getUint16(4) + 40,
    dscp: family === 4 ? view.getUint8(1) >> 2 : (view.getUint16(0) >> 6) & 63,
    flowLabel: family === 4 ? undefined : view.getUint32(0) & 0xfffff,
    fragment: (dontFragment ? 1 : 0) | (later ? 2 : 0) | (!later && more ? 4 : 0) | (later && !more ? 8 : 0),
    ports: hasPorts ? [view.getUint16(start), view.getUint16(start + 2)] : undefined,
    tcpFlags: !later && protocol === 6 ? view.getUint8(start + 13) : undefined,
    icmp: !later && (protocol === 1 || protocol === 58) ? [view.getUint8(start), view.getUint8(start + 1)] : undefined,
  };
}

export function applies({ dst, source, numbers, flags }: Flowrule, packet: FramePacket): boolean {
  const { family } = packet;
  if (!prefixContainsAddress(dst, { family, value: packet.destination })) return false;
  if (source !== undefined && !prefixContainsAddress(source, { family, value: packet.source })) return false;
  const [sourcePort, destinationPort] = packet.ports ?? [];
  const one = (set: NumberSet | undefined, ...values: (number | undefined)[]): boolean =>
    set === undefined || values.some((value) => value !== undefined && isInSet(set, value));
  const bits = (expression: FlagExpression | undefined, value: number | undefined): boolean =>
    expression === undefined ||
    (value !== undefined && expression.some(({ set, unset }) => (value & set) === set && (value & unset) === 0));
  return (
    one(numbers.protocol, packet.protocol) &&
    one(numbers.port, sourcePort, destinationPort) &&
    one(numbers['source-port'], sourcePort) &&
    one(numbers['destination-port'], destinationPort) &&
    one(numbers['icmp-type'], packet.icmp?.[0]) &&
    one(numbers['icmp-code'], packet.icmp?.[1]) &&
    one(numbers['packet-length'], packet.length) &&
    one(numbers.dscp, packet.dscp) &&
    one(numbers['flow-label'], packet.flowLabel) &&
    bits(flags['tcp-flags'], packet.tcpFlags) &&
    bits(flags.fragment, packet.fragment)
  );
}
