/**
 * A text that is served as it is until the next release: compressed once, named once, whoever asks for it. Owns the
 * headers of such an answer.
 */
import { hash } from 'node:crypto';
import { createGunzip, gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { holdsAlready } from '../entity-tag.ts';

export interface ServedText {
  readonly media: string;
  readonly gzipped: Buffer;
  /** Weak: one for both encodings (RFC 9110, 8.8.3). */
  readonly tag: string;
}

export function servedText(media: string, text: string): ServedText {
  return compressedText(media, gzipSync(text));
}

export function compressedText(media: string, gzipped: Buffer): ServedText {
  return { media, gzipped, tag: `W/"${hash('sha1', gzipped, 'base64url')}"` };
}

/** Asked anew each time, sent anew only when another version serves it. */
export function sendText(request: FastifyRequest, reply: FastifyReply, { media, gzipped, tag }: ServedText): void {
  reply.headers({
    etag: tag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
  });
  if (holdsAlready(request.headers['if-none-match'], tag)) {
    reply.code(304).send();
    return;
  }
  reply.header('content-type', `${media}; charset=utf-8`);
  if (acceptsGzip(request)) {
    reply.header('content-encoding', 'gzip').send(gzipped);
    return;
  }
  const plain = createGunzip();
  plain.end(gzipped);
  reply.send(plain);
}

/** RFC 9110, 12.5.3, as far as browsers and curl go: named, and not with a weight of nothing. */
function acceptsGzip(request: FastifyRequest): boolean {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return /(^|,)\s*(gzip|\*)\s*(;\s*q=(1|0\.\d*[1-9]\d*)\S*)?\s*(,|$)/i.test(accepted);
}
