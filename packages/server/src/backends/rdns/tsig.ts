/**
 * Signs requests and verifies answers with a shared key (TSIG, RFC 8945). Owns what the MAC is computed over; keeps
 * nothing and never shows a secret.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { TsigKey } from '@levee/core/rdns/zone-settings.ts';
import { classes, types } from '../dns/protocol.ts';
import { nameOctets, type ServerTsig } from './dns-message.ts';

/** How far apart the clocks may be (RFC 8945, 10). */
export const fudgeSeconds = 300;

export const tsigErrors = { badSig: 16, badKey: 17, badTime: 18, badTrunc: 22 } as const;

export interface Signed {
  readonly message: Buffer;
  /** What the answer's MAC goes on from. */
  readonly mac: Buffer;
}

/** `message` holds no TSIG yet. */
export function sign(message: Buffer, key: TsigKey, nowSeconds: number): Signed {
  const times = timesOf(nowSeconds, fudgeSeconds);
  const end = Buffer.alloc(4);
  const mac = macOf(key, [message, variables(key, times, end)]);
  const data = Buffer.concat([nameOctets(key.algorithm), times, u16(mac.length), mac, message.subarray(0, 2), end]);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(types.tsig, 0);
  fixed.writeUInt16BE(classes.any, 2);
  fixed.writeUInt16BE(data.length, 8);
  const signed = Buffer.concat([message, nameOctets(key.name), fixed, data]);
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10);
  return { message: signed, mac };
}

/** Whether the answer comes from who has the key, and belongs to the request of that MAC. */
export function verify(
  message: Buffer,
  tsig: ServerTsig,
  key: TsigKey,
  requestMac: Buffer,
  nowSeconds: number,
): boolean {
  if (tsig.keyName !== key.name || tsig.algorithm !== key.algorithm) return false;
  const before = Buffer.from(message.subarray(0, tsig.start));
  before.writeUInt16BE(tsig.originalId, 0);
  before.writeUInt16BE(before.readUInt16BE(10) - 1, 10);
  const end = Buffer.concat([u16(tsig.error), u16(tsig.other.length), tsig.other]);
  const times = timesOf(tsig.timeSigned, tsig.fudgeSeconds);
  const mac = macOf(key, [u16(requestMac.length), requestMac, before, variables(key, times, end)]);
  // A truncated MAC is taken by nobody here: no server sends one unasked.
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) return false;
  return tsig.error === tsigErrors.badTime || Math.abs(nowSeconds - tsig.timeSigned) <= tsig.fudgeSeconds;
}

/** RFC 8945, 4.3.3; `end` is the error and the other data. */
function variables(key: TsigKey, times: Buffer, end: Buffer): Buffer {
  const classAndTtl = Buffer.alloc(6);
  classAndTtl.writeUInt16BE(classes.any, 0);
  return Buffer.concat([nameOctets(key.name), classAndTtl, nameOctets(key.algorithm), times, end]);
}

function macOf(key: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(key.algorithm.slice('hmac-'.length), Buffer.from(key.secret, 'base64'));
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

function timesOf(seconds: number, fudge: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeUIntBE(seconds, 0, 6);
  buffer.writeUInt16BE(fudge, 6);
  return buffer;
}

function u16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16BE(value, 0);
  return buffer;
}
