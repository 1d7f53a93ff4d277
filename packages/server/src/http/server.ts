/**
 * The HTTP side of the control plane: one set of routes, served on TCP and on a unix socket alike. Owns limits,
 * request ids, error answers, unknown paths and methods, health. Knows operations only as contract's data.
 */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ErrorCode } from '@levee/contract/errors.ts';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { Caller } from '../commands/caller.ts';
import type { Failure } from '../commands/outcome.ts';
import { addressList, isAmong } from './address-list.ts';
import { createBrokenRequests } from './broken-request.ts';
import { errorAnswer, failureOfException } from './error-answer.ts';
import { parseJsonBody } from './json-body.ts';
import { methodsOf, type PathTemplate } from './path-methods.ts';
import { requestIdOf } from './request-id.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined;
  }
}

const bodyMaximumBytes = 1024 * 1024;

export interface HttpServer {
  readonly app: FastifyInstance;
  readonly sendFailure: (reply: FastifyReply, failure: Failure) => void;
  readonly sendException: (reply: FastifyReply, error: unknown) => void;
  /** The paths with their methods, for 405: set once the routes are known. */
  setPaths(paths: readonly PathTemplate[]): void;
  /** `host:port` (port 0: any) and, when given, a unix socket of mode 0600. */
  listen(address: { readonly host: string; readonly port: number }, socketPath?: string): Promise<AddressInfo>;
  /** Stops accepting, lets requests under way finish for `graceMilliseconds`, then cuts. */
  close(graceMilliseconds?: number): Promise<void>;
}

/** Milliseconds. */
export interface HttpLimits {
  readonly headersTimeout: number;
  /** From the first byte to the last one of a request. */
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  readonly connectionsCheckingInterval: number;
}

/** A sender slower than 1 MiB in a minute is cut. */
export const usualLimits: HttpLimits = {
  headersTimeout: 15_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 5_000,
};

const headersMaximumBytes = 16 * 1024;

export function createHttpServer(
  log: Logger,
  limits: HttpLimits = usualLimits,
  trustedProxies: readonly string[] = [],
): HttpServer {
  let paths: readonly PathTemplate[] = [];
  const trusted = addressList(trustedProxies);
  const app: FastifyInstance = Fastify({
    // A line a request costs a third of the throughput: errors are logged where they are answered.
    logger: false,
    bodyLimit: bodyMaximumBytes,
    // `request.ip`: the peer, or behind trusted ones the rightmost entry of X-Forwarded-For that is none of them.
    trustProxy: trustedProxies.length > 0 && ((address: string | undefined) => isAmong(trusted, address)),
    requestIdHeader: false,
    genReqId: (request: IncomingMessage) => requestIdOf(request.headers['x-request-id']),
    routerOptions: { maxParamLength: 256, caseSensitive: true, ignoreTrailingSlash: false },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      sendFastifyError(reply as unknown as FastifyReply, error);
    },
  });
  app.decorateRequest('caller', undefined);

  function sendFailure(reply: FastifyReply, failure: Failure, headers?: Record<string, string>): void {
    const answer = errorAnswer(failure, reply.request.id, headers);
    reply.code(answer.status).headers(answer.headers).header('cache-control', 'no-store').send(answer.body);
  }

  function sendException(reply: FastifyReply, error: unknown): void {
    const failure = failureOfException(error) ?? { code: 'internal' as const, details: [] };
    const { method, url, id } = reply.request;
    const line = { requestId: id, method, url: url.split('?', 1)[0], err: error };
    if (failure.code === 'internal') log.error(line, 'request failed');
    else if (failure.code === 'unavailable') log.warn(line, 'database unavailable');
    if (reply.sent) return;
    sendFailure(reply, failure);
  }

  function sendFastifyError(reply: FastifyReply, error: FastifyError): void {
    const code = fastifyCodes[error.code];
    if (code === undefined) sendException(reply, error);
    else sendFailure(reply, { code, details: [] });
  }

  app.addHook('onRequest', (request, reply, next) => {
    reply.header('x-request-id', request.id);
    next();
  });
  if (log.isLevelEnabled('debug')) {
    app.addHook('onResponse', (request, reply, next) => {
      const { method, url, id } = request;
      const line = {
        requestId: id,
        method,
        url: url.split('?', 1)[0],
        status: reply.statusCode,
        ms: reply.elapsedTime,
      };
      log.debug(line, 'request');
      next();
    });
  }
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, next) => {
    const parsed = parseJsonBody(bytes as Buffer);
    if (parsed.ok) next(null, parsed.value);
    else next(new RefusedBody({ code: 'invalid_json', details: [parsed.problem] }), undefined);
  });
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error instanceof RefusedBody) sendFailure(reply, error.failure);
    else sendFastifyError(reply, error);
  });
  app.setNotFoundHandler((request, reply) => {
    const methods = methodsOf(paths, request.url.split('?', 1)[0] ?? '');
    if (methods.length === 0) return sendFailure(reply, { code: 'not_found', details: [] });
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
    if (request.method === 'OPTIONS') return void reply.code(204).header('allow', allow).send();
    const message = `${request.method} is not among the methods of this path: ${allow}.`;
    const failure = {
      code: 'method_not_allowed',
      details: [{ field: '', code: 'method_not_allowed', message }],
    } as const;
    sendFailure(reply, failure, { allow });
  });

  const broken = createBrokenRequests();
  const servers: Server[] = [];
  const sockets: string[] = [];
  const serve = (): Server => {
    // A missing Host is refused with our own answer: Node's has no body.
    const settings = { ...limits, maxHeaderSize: headersMaximumBytes, requireHostHeader: false };
    const route = (request: IncomingMessage, response: ServerResponse) => {
      if (broken.admit(request, response)) app.routing(request, response);
    };
    const server = createServer(settings, route);
    broken.watch(server);
    // `Expect` other than 100-continue: go on without; the body is judged like any other.
    server.on('checkExpectation', route);
    servers.push(server);
    return server;
  };

  return {
    app,
    sendFailure,
    sendException,
    setPaths(templates) {
      paths = templates;
    },
    async listen({ host, port }, socketPath) {
      await app.ready();
      if (socketPath !== undefined) {
        await rm(socketPath, { force: true });
        const server = serve();
        // The mode is set before anything can connect to more than an empty backlog: the directory is 0700 too.
        await listening(server, () => server.listen(socketPath));
        await chmod(socketPath, 0o600);
        sockets.push(socketPath);
      }
      const server = serve();
      await listening(server, () => server.listen({ host, port, backlog: 511 }));
      return server.address() as AddressInfo;
    },
    async close(graceMilliseconds = 5_000) {
      const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
      // Again and again: a connection is idle only when the request under way on it has been answered.
      const idle = setInterval(() => {
        for (const server of servers) server.closeIdleConnections();
      }, 20);
      const cut = setTimeout(() => {
        for (const server of servers) server.closeAllConnections();
      }, graceMilliseconds);
      await Promise.all(closed);
      clearTimeout(cut);
      clearInterval(idle);
      await app.close();
      await Promise.all(sockets.map((path) => rm(path, { force: true })));
    },
  };
}

function listening(server: Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    start();
  });
}

class RefusedBody extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.code);
    this.failure = failure;
  }
}

/** Fastify's own refusals of a request. */
const fastifyCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_BAD_URL: 'not_found',
  FST_ERR_NOT_FOUND: 'not_found',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
};
