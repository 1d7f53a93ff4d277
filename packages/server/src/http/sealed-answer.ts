/**
 * Keeps an answer in the database so that only the key it was given to can read it again: it may hold a secret (a
 * new API key). AES-256-GCM under a key that HKDF (RFC 5869) derives from the caller's API key, which the database
 * does not hold. Owns the format: version 2, salt (16), nonce (12), tag (16), and sealed the headers as a line of JSON and
 * the body. Version 1 had no headers.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const version = 2;
const bareVersion = 1;
const saltEnd = 17;
const nonceEnd = 29;
const tagEnd = 45;

function keyFor(apiKey: string, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', apiKey, salt, 'levee stored answer', 32));
}

export interface SealedAnswer {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function sealAnswer(apiKey: string, { body, headers }: SealedAnswer): Buffer {
  const salt = randomBytes(16);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keyFor(apiKey, salt), nonce);
  const sealed = Buffer.concat([cipher.update(`${JSON.stringify(headers)}\n${body}`, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(version), salt, nonce, cipher.getAuthTag(), sealed]);
}

/** Throws when the row is not one of ours or the key another: neither can happen without a fault. */
export function openAnswer(apiKey: string, sealed: Buffer): SealedAnswer {
  if (sealed[0] !== version && sealed[0] !== bareVersion) throw new Error('stored answer of an unknown version');
  const key = keyFor(apiKey, sealed.subarray(1, saltEnd));
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(saltEnd, nonceEnd));
  decipher.setAuthTag(sealed.subarray(nonceEnd, tagEnd));
  const text = decipher.update(sealed.subarray(tagEnd), undefined, 'utf8') + decipher.final('utf8');
  if (sealed[0] === bareVersion) return { body: text, headers: {} };
  const end = text.indexOf('\n');
  return { body: text.slice(end + 1), headers: JSON.parse(text.slice(0, end)) };
}
