/**
 * Owns what the beginning of a sampled packet says: down through the link layer's headers to IP, over IPv6's extension
 * headers to the ports. Fills a record; never reads past `end`, and never looks into tunnels: what a router forwards by is
 * the outer header.
 */
import { LONGEST_PACKET } from '@levee/core/detection/bounds.ts';
import type { FlowRecord } from '../flow-record.ts';
import { u8, u16, u32 } from './octets.ts';
import type { Reason } from './reasons.ts';

export const ETHERNET = 0;
export const PPP = 1;
export const MPLS = 2;
export const IP = 3;
/** After two octets that name what follows, as Ethernet's do. */
const TYPED = 4;

/**
 * Reads the packet in `data[start … end)`, whose first header is of the given layer. `wireLength`: octets that the packet had on
 * the wire from `start` on, 0 if that was not told. What IP says of its length is the sender's word: of a packet that says more
 * than was there, what was there counts, as where IP does not tell (segments that are cut after sampling, jumbograms). Fills
 * addresses to `headerLength`; leaves packets, rates and interfaces alone.
 */
export function readPacket(
  data: Uint8Array,
  start: number,
  end: number,
  layer: number,
  wireLength: number,
  record: FlowRecord,
): Reason | undefined {
  let at = start;
  let type = 0;
  for (;;) {
    switch (layer) {
      case ETHERNET:
        if (end - at < 14) return 'header_cut';
        type = u16(data, at + 12);
        at += 14;
        layer = TYPED;
        break;
      case TYPED:
        switch (type) {
          case 0x0800:
          case 0x86dd:
            layer = IP;
            break;
          // 802.1Q, 802.1ad, and the numbers in use for stacks before it.
          case 0x8100:
          case 0x88a8:
          case 0x9100:
          case 0x9200:
          case 0x9300:
            if (end - at < 4) return 'header_cut';
            type = u16(data, at + 2);
            at += 4;
            break;
          case 0x8847:
          case 0x8848:
            layer = MPLS;
            break;
          // PPPoE's session stage (RFC 2516): its own header, then PPP's protocol.
          case 0x8864:
            if (end - at < 6) return 'header_cut';
            at += 6;
            layer = PPP;
            break;
          default:
            // 802.3 with LLC and SNAP (RFC 1042): a length in place of the type.
            if (type > 1500) return 'header_not_ip';
            if (end - at < 8) return 'header_cut';
            if (u32(data, at) !== 0xaaaa0300 || u8(data, at + 4) !== 0 || u8(data, at + 5) !== 0) {
              return 'header_not_ip';
            }
            type = u16(data, at + 6);
            if (type <= 1500) return 'header_not_ip';
            at += 8;
        }
        break;
      case PPP: {
        // Address and control (RFC 1662) may be left out, and so may the first octet of the protocol.
        if (end - at >= 2 && u16(data, at) === 0xff03) at += 2;
        if (end - at < 2) return 'header_cut';
        let protocol = u8(data, at);
        if ((protocol & 1) === 1) {
          at += 1;
        } else {
          protocol = u16(data, at);
          at += 2;
        }
        if (protocol === 0x21 || protocol === 0x57) layer = IP;
        else if (protocol === 0x281 || protocol === 0x283) layer = MPLS;
        else return 'header_not_ip';
        break;
      }
      case MPLS: {
        let isLast = false;
        while (!isLast) {
          if (end - at < 4) return 'header_cut';
          isLast = (u8(data, at + 2) & 1) === 1;
          at += 4;
        }
        if (end - at < 4) return 'header_cut';
        const nibble = u8(data, at) >> 4;
        if (nibble === 4 || nibble === 6) {
          layer = IP;
        } else if (nibble === 0) {
          // A pseudowire's control word (RFC 4448), then the frame that it carries.
          at += 4;
          layer = ETHERNET;
        } else {
          return 'header_not_ip';
        }
        break;
      }
      default:
        return readIp(data, at, end, wireLength === 0 ? 0 : wireLength - (at - start), record);
    }
  }
}

/** Octets of a packet: `told` by its IP header, 0: not told. What was sampled of it was there in any case. */
function packetLength(told: number, wireLength: number, sampled: number): number {
  const there = wireLength === 0 ? 0 : wireLength > sampled ? wireLength : sampled;
  const length = told === 0 ? there || sampled : there > 0 && there < told ? there : told;
  return length > LONGEST_PACKET ? LONGEST_PACKET : length;
}

function readIp(data: Uint8Array, at: number, end: number, wireLength: number, record: FlowRecord): Reason | undefined {
  if (at >= end) return 'header_cut';
  const version = u8(data, at) >> 4;
  if (version === 4) return readIpv4(data, at, end, wireLength, record);
  if (version === 6) return readIpv6(data, at, end, wireLength, record);
  return 'header_malformed';
}

function readIpv4(
  data: Uint8Array,
  at: number,
  end: number,
  wireLength: number,
  record: FlowRecord,
): Reason | undefined {
  if (end - at < 20) return 'header_cut';
  const headerLength = (u8(data, at) & 15) << 2;
  const total = packetLength(u16(data, at + 2), wireLength, end - at);
  if (headerLength < 20 || total < headerLength) return 'header_malformed';
  const fragment = u16(data, at + 6);
  const protocol = u8(data, at + 9);
  record.family = 4;
  record.source0 = u32(data, at + 12);
  record.source1 = 0;
  record.source2 = 0;
  record.source3 = 0;
  record.destination0 = u32(data, at + 16);
  record.destination1 = 0;
  record.destination2 = 0;
  record.destination3 = 0;
  record.protocol = protocol;
  record.fragment = (fragment & 0x1fff) !== 0 ? 2 : (fragment & 0x2000) !== 0 ? 1 : 0;
  record.bytes = total;
  record.ttl = u8(data, at + 8);
  // What a short frame was padded with is not the packet's.
  const limit = end - at > total ? at + total : end;
  record.header = data;
  record.headerStart = at;
  record.headerLength = limit - at;
  readTransport(data, at + headerLength, limit, record);
  return undefined;
}

function readIpv6(
  data: Uint8Array,
  at: number,
  end: number,
  wireLength: number,
  record: FlowRecord,
): Reason | undefined {
  if (end - at < 40) return 'header_cut';
  const payload = u16(data, at + 4);
  const isTold = payload > 0 || wireLength <= 40;
  const total = packetLength(isTold ? 40 + payload : 0, wireLength, end - at);
  record.family = 6;
  record.source0 = u32(data, at + 8);
  record.source1 = u32(data, at + 12);
  record.source2 = u32(data, at + 16);
  record.source3 = u32(data, at + 20);
  record.destination0 = u32(data, at + 24);
  record.destination1 = u32(data, at + 28);
  record.destination2 = u32(data, at + 32);
  record.destination3 = u32(data, at + 36);
  record.fragment = 0;
  record.bytes = total;
  record.ttl = u8(data, at + 7);
  const limit = end - at > total ? at + total : end;
  record.header = data;
  record.headerStart = at;
  record.headerLength = limit - at;
  let next = u8(data, at + 6);
  let place = at + 40;
  // Extension headers (RFC 8200, RFC 4302, RFC 6275, RFC 7401, RFC 5533); where the sample ends among them, the
  // last number read is the protocol.
  while (limit - place >= 8) {
    if (next === 44) {
      const offset = u16(data, place + 2);
      record.fragment = (offset & 0xfff8) !== 0 ? 2 : (offset & 1) !== 0 ? 1 : record.fragment;
      next = u8(data, place);
      place += 8;
      if (record.fragment === 2) break;
    } else if (next === 0 || next === 43 || next === 60 || next === 135 || next === 139 || next === 140) {
      next = u8(data, place);
      place += (u8(data, place + 1) + 1) << 3;
    } else if (next === 51) {
      next = u8(data, place);
      place += (u8(data, place + 1) + 2) << 2;
    } else {
      break;
    }
  }
  record.protocol = next;
  readTransport(data, place, limit, record);
  return undefined;
}

function readTransport(data: Uint8Array, at: number, limit: number, record: FlowRecord): void {
  record.sourcePort = 0;
  record.destinationPort = 0;
  record.tcpFlags = 0;
  record.icmp = -1;
  if (record.fragment === 2) return;
  switch (record.protocol) {
    case 6:
      if (limit - at >= 14) record.tcpFlags = u8(data, at + 13);
      break;
    case 17:
    case 33:
    case 132:
    case 136:
      break;
    case 1:
    case 58:
      if (limit - at >= 2) record.icmp = u16(data, at);
      return;
    default:
      return;
  }
  if (limit - at < 4) return;
  record.sourcePort = u16(data, at);
  record.destinationPort = u16(data, at + 2);
}
