/**
 * The bytes of nfnetlink messages about conntrack's entries, both ways (linux/netfilter/nfnetlink_conntrack.h). Owns
 * layouts only; opens no socket.
 */
import type { Address, Family } from '@levee/core/net/prefix.ts';
import { attribute, attributesOf } from '../nft/netlink-message.ts';

export const conntrackSubsystem = 1; // NFNL_SUBSYS_CTNETLINK
const headerBytes = 20; // nlmsghdr + nfgenmsg
const messageNew = 0; // IPCTNL_MSG_CT_NEW
const messageGet = 1; // IPCTNL_MSG_CT_GET
const flagRequest = 1;
const flagDump = 0x300;
const nested = 0x8000;
const tuple = { original: 1, reply: 2, zone: 18, protocolInfo: 4 }; // CTA_…
const tcpInfo = 1; // CTA_PROTOINFO_TCP
const tcpFlags = { original: 4, reply: 5 }; // CTA_PROTOINFO_TCP_FLAGS_…
const protocolTcp = 6;
/** IP_CT_TCP_FLAG_BE_LIBERAL (linux/netfilter/nf_conntrack_tcp.h): windows of that side are not looked at. */
const liberal = 0x08;

/** NFPROTO_IPV4, NFPROTO_IPV6 */
const familyNumbers: Record<Family, number> = { 4: 2, 6: 10 };

export interface TcpConnection {
  /** Of both tuples: they differ from each other's where addresses are translated. */
  readonly addresses: readonly Address[];
  /** The attributes by which the kernel finds the entry again. */
  readonly identity: Buffer;
}

/** Asks for every entry of a family. */
export function connectionsRequest(family: Family): Buffer {
  return message(messageGet, flagRequest | flagDump, family, Buffer.alloc(0));
}

/** `attributes`: of one entry. Undefined when it is not TCP's. */
export function parseTcpConnection(attributes: Buffer, family: Family): TcpConnection | undefined {
  const original = attribute(attributes, tuple.original);
  const protocol = original && attribute(original, 2); // CTA_TUPLE_PROTO
  if (protocol === undefined || attribute(protocol, 1)?.[0] !== protocolTcp) return undefined;
  const reply = attribute(attributes, tuple.reply);
  const zone = attribute(attributes, tuple.zone);
  return {
    addresses: [original, reply].flatMap((each) => (each ? addressesOf(each, family) : [])),
    identity: Buffer.concat([
      encode(tuple.original | nested, original ?? Buffer.alloc(0)),
      ...(zone ? [encode(tuple.zone, zone)] : []),
    ]),
  };
}

/** Has the kernel take every segment of the connection for one of it, whatever its sequence number. */
export function liberalRequest(connection: TcpConnection, family: Family): Buffer {
  const flags = Buffer.from([liberal, liberal]); // struct nf_ct_tcp_flags: flags, mask
  const both = Buffer.concat([encode(tcpFlags.original, flags), encode(tcpFlags.reply, flags)]);
  const info = encode(tuple.protocolInfo | nested, encode(tcpInfo | nested, both));
  return message(messageNew, flagRequest, family, Buffer.concat([connection.identity, info]));
}

function addressesOf(ofTuple: Buffer, family: Family): Address[] {
  const addresses = attribute(ofTuple, 1); // CTA_TUPLE_IP: V4_SRC, V4_DST, V6_SRC, V6_DST
  if (addresses === undefined) return [];
  return [...attributesOf(addresses)].map(({ value }) => ({ family, value: BigInt(`0x${value.toString('hex')}`) }));
}

function message(type: number, flags: number, family: Family, attributes: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(headerBytes + attributes.length, 0);
  header.writeUInt16LE((conntrackSubsystem << 8) | type, 4);
  header.writeUInt16LE(flags, 6);
  header.writeUInt8(familyNumbers[family], 16);
  return Buffer.concat([header, attributes]);
}

function encode(type: number, value: Buffer): Buffer {
  const length = 4 + value.length;
  const bytes = Buffer.alloc((length + 3) & ~3);
  bytes.writeUInt16LE(length, 0);
  bytes.writeUInt16LE(type, 2);
  value.copy(bytes, 4);
  return bytes;
}
