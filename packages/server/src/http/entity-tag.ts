/** Entity tags (RFC 9110, 8.8.3) of answers, from their bytes; and whether the client holds that very answer. */
import { hash } from 'node:crypto';

export function entityTagOf(body: string | Uint8Array): string {
  return `"${hash('sha1', body, 'base64url')}"`;
}

/** `If-None-Match`, compared weakly as RFC 9110, 13.1.2 wants. */
export function holdsAlready(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const opaque = (text: string) => text.trim().replace(/^W\//, '');
  return header.split(',').some((each) => opaque(each) === opaque(tag));
}
