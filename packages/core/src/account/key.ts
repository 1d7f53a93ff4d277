/**
 * The text form of API keys and of the keys of routers and detectors: `lv_<role letter>_<secret>_<checksum>`. Pure: random bytes come in as an
 * argument, nothing is hashed or stored here. The form lets secret scanners recognise a key and lets a mistyped one be
 * refused without a look-up; the checksum is no protection against anybody.
 */

export type KeyRole = 'operator' | 'provider' | 'user' | 'router' | 'detector';

/** Bytes that makeKey takes: 256 bits, 43 characters. */
export const KEY_RANDOM_BYTES = 32;

const LETTERS: Readonly<Record<KeyRole, string>> = {
  operator: 'o',
  provider: 'p',
  user: 'u',
  router: 'r',
  detector: 'd',
};
const ROLES = new Map(Object.entries(LETTERS).map(([role, letter]) => [letter, role as KeyRole]));

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const SHAPE = /^lv_([dopur])_([0-9A-Za-z]{22,64})_([0-9A-Za-z]{6})$/;

/**
 * A new key's text. Base 62 of the whole number that the bytes spell: 62^43 > 2^256, so nothing is lost and every key
 * has the same length. Throws on another number of bytes: a short key would be a bug.
 */
export function makeKey(role: KeyRole, random: Uint8Array): string {
  if (random.length !== KEY_RANDOM_BYTES) throw new RangeError(`a key takes ${KEY_RANDOM_BYTES} random bytes`);
  let value = 0n;
  for (const byte of random) value = (value << 8n) | BigInt(byte);
  const body = `lv_${LETTERS[role]}_${base62(value, SECRET_LENGTH)}`;
  return `${body}_${checksum(body)}`;
}

/** The role that a well-formed key claims, or undefined when form or checksum is wrong. Proves nothing else. */
export function parseKeyRole(text: string): KeyRole | undefined {
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const [, letter = '', , given] = match;
  if (checksum(text.slice(0, -(CHECKSUM_LENGTH + 1))) !== given) return undefined;
  return ROLES.get(letter);
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = (DIGITS[Number(rest % 62n)] ?? '') + text;
  return text;
}

/** CRC-32 (ISO 3309, polynomial 0xEDB88320 reflected) of the ASCII text before it, in six base 62 digits. */
function checksum(text: string): string {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++) {
    crc ^= text.charCodeAt(i);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return base62(BigInt((crc ^ 0xffffffff) >>> 0), CHECKSUM_LENGTH);
}
