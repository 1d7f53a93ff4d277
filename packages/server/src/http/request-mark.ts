/**
 * By what a repeated request is known as the same one: HMAC-SHA-256 of method, path and body, under a key that HKDF
 * (RFC 5869) derives from the caller's API key. A body may hold a password; without the API key, which the database
 * does not hold, nobody can try passwords against the mark as they could against a plain digest.
 */
import { createHmac, hkdfSync } from 'node:crypto';

/** The same whatever the order of members in the body; 32 bytes. */
export function requestMark(apiKey: string, method: string, url: string, body: unknown): Buffer {
  const key = Buffer.from(hkdfSync('sha256', apiKey, '', 'levee repeated request', 32));
  return createHmac('sha256', key)
    .update(`${method} ${url}\n${sortedJson(body)}`)
    .digest();
}

function sortedJson(value: unknown): string {
  return (
    JSON.stringify(value, (_, each: unknown) =>
      typeof each === 'object' && each !== null && !Array.isArray(each)
        ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
        : each,
    ) ?? ''
  );
}
