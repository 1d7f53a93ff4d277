/**
 * Keeps an answer in the database so that only the key it was given to can read it again: it may hold a secret (a
 * new API key). AES-256-GCM under a key that HKDF (RFC 5869) derives from the caller's API key, which the database
 * does not hold. Owns the format: version 1, salt (16), nonce (12), tag (16), text.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const version = 1;
const saltEnd = 17;
const nonceEnd = 29;
const tagEnd = 45;

function keyFor(apiKey: string, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', apiKey, salt, 'levee stored answer', 32));
}

export function sealAnswer(apiKey: string, text: string): Buffer {
  const salt = randomBytes(16);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keyFor(apiKey, salt), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(version), salt, nonce, cipher.getAuthTag(), sealed]);
}

/** Throws when the row is not one of ours or the key another: neither can happen without a fault. */
export function openAnswer(apiKey: string, sealed: Buffer): string {
  if (sealed[0] !== version) throw new Error('stored answer of an unknown version');
  const key = keyFor(apiKey, sealed.subarray(1, saltEnd));
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(saltEnd, nonceEnd));
  decipher.setAuthTag(sealed.subarray(nonceEnd, tagEnd));
  return decipher.update(sealed.subarray(tagEnd), undefined, 'utf8') + decipher.final('utf8');
}
