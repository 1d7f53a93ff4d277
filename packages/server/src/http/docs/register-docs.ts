/**
 * `/docs`: the interface's description for people, with everything that the page needs on the same origin. Needs no
 * key, as it holds no secret: what it shows is the same for every installation of this version.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { contentSecurityPolicy, pageHtml, startScript } from './page.ts';
import { type ServedText, sendText, servedText } from './served-text.ts';
import { viewerScriptSource } from './viewer-script.ts';

export interface DocsServices {
  /** The OpenAPI document as JSON text; always the same. */
  readonly openapi: () => string;
  readonly sendException: (reply: FastifyReply, error: unknown) => void;
}

/** For 405. */
export const docsPaths = ['/docs', '/docs/', '/docs/openapi.json', '/docs/start.js', '/docs/viewer.js'] as const;

export function registerDocs(app: FastifyInstance, services: DocsServices): void {
  const viewerScript = viewerScriptSource();
  const html = servedText('text/html', pageHtml);
  const script = servedText('text/javascript', startScript);
  let described: ServedText | undefined;
  const [page, slashed, document, start, viewer] = docsPaths;

  app.get(page, (request, reply) => {
    reply.header('content-security-policy', contentSecurityPolicy);
    sendText(request, reply, html);
  });
  // Relative, as all that the page names: whoever puts it behind a prefix finds it there.
  app.get(slashed, (_request, reply) => reply.code(308).header('location', '../docs').send());
  app.get(document, (request, reply) => {
    described ??= servedText('application/json', services.openapi());
    sendText(request, reply, described);
  });
  app.get(start, (request, reply) => sendText(request, reply, script));
  app.get(viewer, async (request, reply) => {
    try {
      sendText(request, reply, await viewerScript());
    } catch (error) {
      services.sendException(reply, error);
    }
    return reply;
  });
}
