/**
 * Answers what never became a request that routes could see: malformed HTTP, headers beyond the limit, a sender that
 * is too slow, a tunnel. There is no reply object then, so the answer is written to the socket. Owns that each
 * connection gets at most one such answer and none in the middle of another one.
 */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode } from '@levee/contract/errors.ts';
import { errorAnswer } from './error-answer.ts';
import { requestIdOf } from './request-id.ts';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface BrokenRequests {
  /** Call it for each request before it is handled; false: it has been answered here. */
  admit(request: IncomingMessage, response: ServerResponse): boolean;
  watch(server: Server): void;
}

export function createBrokenRequests(): BrokenRequests {
  /** The latest request of a connection. */
  const latest = new WeakMap<Duplex, Exchange>();
  const refused = new WeakSet<Duplex>();

  function refuse(socket: Duplex, code: ErrorCode): void {
    if (refused.has(socket)) return;
    refused.add(socket);
    const last = latest.get(socket);
    // An answer is under way or the fault lies in a body that was answered already: nothing may be written any more.
    const answering = last !== undefined && !last.response.writableFinished && last.response.headersSent;
    const answered = last !== undefined && !last.request.complete && last.response.headersSent;
    const waiting = last?.request.complete && !last.response.headersSent;
    if (!socket.writable || answering || waiting) socket.destroy();
    else if (answered) socket.end();
    else socket.end(answerText(code));
  }

  return {
    admit(request, response) {
      latest.set(request.socket, { request, response });
      // RFC 9112, 3.2: a request without Host is answered 400.
      if (request.headers.host !== undefined || request.httpVersion === '1.0') return true;
      refused.add(request.socket);
      request.socket.end(answerText('invalid_request'));
      return false;
    },
    watch(server) {
      server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
        if (error.code === 'ECONNRESET') socket.destroy();
        else refuse(socket, codes[error.code ?? ''] ?? 'invalid_request');
      });
      // A proxy is asked to open a tunnel: this is none.
      server.on('connect', (_request, socket: Duplex) => refuse(socket, 'invalid_request'));
    },
  };
}

const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

function answerText(code: ErrorCode): string {
  const requestId = requestIdOf(undefined);
  const { status, body } = errorAnswer({ code, details: [] }, requestId);
  const text = JSON.stringify(body);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? code}\r\nconnection: close\r\n` +
    `content-type: application/json; charset=utf-8\r\nx-request-id: ${requestId}\r\n` +
    `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}
