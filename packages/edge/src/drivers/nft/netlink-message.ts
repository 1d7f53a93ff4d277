/**
 * The bytes of nfnetlink messages about nf_tables, both ways. Owns layouts only (linux/netlink.h,
 * linux/netfilter/nf_tables.h); opens no socket. Header fields are in the machine's order (little-endian on every
 * platform that Node runs on and nft is packaged for), attribute values of nf_tables in network order.
 */

export const netfilterSubsystem = 10; // NFNL_SUBSYS_NFTABLES
export const familyInet = 1; // NFPROTO_INET
const headerBytes = 20; // nlmsghdr + nfgenmsg

export const messageType = {
  newTable: 0,
  getTable: 1,
  delTable: 2,
  newChain: 3,
  newRule: 6,
  getRule: 7,
  newSetElement: 12,
  getSetElement: 13,
  newGeneration: 15,
  getGeneration: 16,
} as const;

const controlDone = 3; // NLMSG_DONE
const controlError = 2; // NLMSG_ERROR
const flagRequest = 1;
const flagDump = 0x300;
const flagDumpInterrupted = 0x10;

export interface Attribute {
  readonly type: number;
  readonly value: Buffer;
}

export type Message =
  | { readonly kind: 'done'; readonly interrupted: boolean; readonly error: number }
  /** `error`: an errno, 0 for an acknowledgement. */
  | { readonly kind: 'error'; readonly error: number }
  | { readonly kind: 'table'; readonly type: number; readonly interrupted: boolean; readonly attributes: Buffer };

/** Walks a run of attributes; stops at the first malformed one. */
export function* attributesOf(bytes: Buffer): Generator<Attribute> {
  let at = 0;
  while (at + 4 <= bytes.length) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) return;
    yield { type: bytes.readUInt16LE(at + 2) & 0x3fff, value: bytes.subarray(at + 4, at + length) };
    at += (length + 3) & ~3;
  }
}

/** The value of the first attribute of a type. */
export function attribute(bytes: Buffer, type: number): Buffer | undefined {
  for (const each of attributesOf(bytes)) if (each.type === type) return each.value;
  return undefined;
}

/** A value that is a C string, without its end mark. */
export function attributeText(value: Buffer): string {
  const end = value.indexOf(0);
  return value.toString('latin1', 0, end === -1 ? value.length : end);
}

/** Every message of one datagram. `subsystem`: whose tables the messages are about. */
export function* messagesOf(datagram: Buffer, subsystem: number = netfilterSubsystem): Generator<Message> {
  let at = 0;
  while (at + 16 <= datagram.length) {
    const length = datagram.readUInt32LE(at);
    if (length < 16 || at + length > datagram.length) return;
    const type = datagram.readUInt16LE(at + 4);
    const interrupted = (datagram.readUInt16LE(at + 6) & flagDumpInterrupted) !== 0;
    if (type === controlDone) {
      const error = length >= 20 ? -datagram.readInt32LE(at + 16) : 0;
      yield { kind: 'done', interrupted, error };
    } else if (type === controlError) yield { kind: 'error', error: -datagram.readInt32LE(at + 16) };
    else if (type >> 8 === subsystem && length >= headerBytes) {
      yield {
        kind: 'table',
        type: type & 0xff,
        interrupted,
        attributes: datagram.subarray(at + headerBytes, at + length),
      };
    }
    at += (length + 3) & ~3;
  }
}

/** A request of nf_tables with string attributes; `dump` asks for every object that they select. */
export function request(
  type: number,
  texts: readonly (readonly [type: number, text: string])[],
  dump: boolean,
): Buffer {
  const attributes = texts.map(([attributeType, text]) => {
    const length = 4 + text.length + 1;
    const bytes = Buffer.alloc((length + 3) & ~3);
    bytes.writeUInt16LE(length, 0);
    bytes.writeUInt16LE(attributeType, 2);
    bytes.write(text, 4, 'latin1');
    return bytes;
  });
  const header = Buffer.alloc(headerBytes);
  header.writeUInt16LE((netfilterSubsystem << 8) | type, 4);
  header.writeUInt16LE(flagRequest | (dump ? flagDump : 0), 6);
  header.writeUInt8(familyInet, 16);
  const message = Buffer.concat([header, ...attributes]);
  message.writeUInt32LE(message.length, 0);
  return message;
}

/** Of a rule's user data, where nft keeps it: type 0 of runs of an octet of type, one of length, and the value. */
export function commentOf(userData: Buffer): string | undefined {
  for (let at = 0; at + 2 <= userData.length; ) {
    const [type = 0, length = 0] = userData.subarray(at, at + 2);
    const value = userData.subarray(at + 2, at + 2 + length);
    if (type === 0) return attributeText(value);
    at += 2 + length;
  }
  return undefined;
}

/** The counter among a list of expressions (NFTA_LIST_ELEM → NFTA_EXPR_NAME, NFTA_EXPR_DATA), where there is one. */
export function counterOf(expressions: Buffer): { packets: number; bytes: number } | undefined {
  for (const element of attributesOf(expressions)) {
    const counter = counterOfExpression(element.value);
    if (counter) return counter;
  }
  return undefined;
}

/** The same for one expression. */
export function counterOfExpression(expression: Buffer): { packets: number; bytes: number } | undefined {
  const name = attribute(expression, 1);
  if (name === undefined || attributeText(name) !== 'counter') return undefined;
  const data = attribute(expression, 2);
  if (data === undefined) return undefined;
  let packets = 0;
  let bytes = 0;
  for (const { type, value } of attributesOf(data)) {
    if (value.length !== 8) continue;
    if (type === 1) bytes = Number(value.readBigUInt64BE(0));
    if (type === 2) packets = Number(value.readBigUInt64BE(0));
  }
  return { packets, bytes };
}
