/**
 * `/docs`: the interface's description for people, with everything that the page needs on the same origin. Needs no
 * key, as it holds no secret: what it shows is the same for every installation of this version.
 */
import { createGunzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { entityTagOf, holdsAlready } from '../entity-tag.ts';
import { contentSecurityPolicy, pageHtml, startScript } from './page.ts';
import { viewerScriptSource } from './viewer-script.ts';

export interface DocsServices {
  /** The OpenAPI document as JSON text. */
  readonly openapi: () => string;
  readonly sendException: (reply: FastifyReply, error: unknown) => void;
}

/** For 405. */
export const docsPaths = ['/docs', '/docs/', '/docs/openapi.json', '/docs/start.js', '/docs/viewer.js'] as const;

export function registerDocs(app: FastifyInstance, services: DocsServices): void {
  const viewerScript = viewerScriptSource();
  const [page, slashed, document, start, viewer] = docsPaths;

  app.get(page, (request, reply) => {
    reply.header('content-security-policy', contentSecurityPolicy);
    sendText(request, reply, 'text/html', pageHtml);
  });
  // Relative, as all that the page names: whoever puts it behind a prefix finds it there.
  app.get(slashed, (_request, reply) => reply.code(308).header('location', '../docs').send());
  app.get(document, (request, reply) => sendText(request, reply, 'application/json', services.openapi()));
  app.get(start, (request, reply) => sendText(request, reply, 'text/javascript', startScript));
  app.get(viewer, async (request, reply) => {
    try {
      const { gzipped, tag } = await viewerScript();
      if (isHeld(request, reply, tag)) return reply;
      reply.header('content-type', 'text/javascript; charset=utf-8').header('vary', 'accept-encoding');
      if (acceptsGzip(request)) return reply.header('content-encoding', 'gzip').send(gzipped);
      const plain = createGunzip();
      plain.end(gzipped);
      return reply.send(plain);
    } catch (error) {
      services.sendException(reply, error);
      return reply;
    }
  });
}

function sendText(request: FastifyRequest, reply: FastifyReply, media: string, text: string): void {
  if (isHeld(request, reply, entityTagOf(text))) return;
  reply.header('content-type', `${media}; charset=utf-8`).send(text);
}

/** Asked anew each time, sent anew only when another version serves it. */
function isHeld(request: FastifyRequest, reply: FastifyReply, tag: string): boolean {
  reply.headers({
    etag: tag,
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
  });
  if (!holdsAlready(request.headers['if-none-match'], tag)) return false;
  reply.code(304).send();
  return true;
}

/** RFC 9110, 12.5.3, as far as browsers and curl go: named, and not with a weight of nothing. */
function acceptsGzip(request: FastifyRequest): boolean {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return /(^|,)\s*(gzip|\*)\s*(;\s*q=(1|0\.\d*[1-9]\d*)\S*)?\s*(,|$)/i.test(accepted);
}
