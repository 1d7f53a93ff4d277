/**
 * Asks one web server over HTTP or HTTPS, one question at a time or several, on connections that are kept. Not `fetch`, whose
 * connections take ten seconds to give up a silent server, and seconds to notice its return. Redirects are answers like any
 * other. Knows no API.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as secure } from 'node:tls';
import { ConnectionError, dialServer, inWords, type ServerWatch, watchServer } from './server-reach.ts';

export interface HttpQuestion {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** From the question to the whole answer. */
  readonly milliseconds: number;
}

export interface HttpReply {
  readonly status: number;
  readonly text: string;
}

export interface HttpClient {
  /** Rejects with a `ConnectionError`. */
  ask(question: HttpQuestion): Promise<HttpReply>;
  close(): void;
}

const mostAnswerBytes = 256 * 1024 * 1024;

/** @param base the server's URL */
export function createHttpClient(base: string): HttpClient {
  const { protocol, hostname, port } = new URL(base);
  const isSecure = protocol === 'https:';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const place = { host, port: port === '' ? (isSecure ? 443 : 80) : Number(port) };
  const closing = new AbortController();
  const agent = isSecure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  agent.createConnection = (_, made) => {
    dialServer(place, closing.signal).then(
      (socket) =>
        made?.(null, isSecure ? secure({ socket, host, ...(isIP(host) === 0 && { servername: host }) }) : socket),
      (error: Error) => made?.(error, undefined as unknown as Socket),
    );
    return undefined as unknown as Socket;
  };

  return {
    async ask({ method, url, headers, body, milliseconds }) {
      let watch: ServerWatch | undefined;
      const deadline = AbortSignal.timeout(milliseconds);
      const signal = AbortSignal.any([closing.signal, deadline]);
      try {
        return await new Promise<HttpReply>((resolve, reject) => {
          const send = isSecure ? secureRequest : request;
          const asked = send(url, { method, agent, signal, headers }, (response) => {
            textOf(response, () => watch?.heard()).then(
              (text) => resolve({ status: response.statusCode ?? 0, text }),
              reject,
            );
          });
          asked.on('error', reject);
          // Its connection is made by then, or given up by itself.
          asked.once('socket', () => {
            watch = watchServer(place, (error) => asked.destroy(error));
          });
          asked.end(body);
        });
      } catch (error) {
        // None that was kept is used again.
        agent.destroy();
        if (error instanceof ConnectionError) throw error;
        if (closing.signal.aborted) throw new ConnectionError('the connection was given up');
        if (deadline.aborted) throw new ConnectionError(`no answer within ${milliseconds / 1000} s`);
        throw new ConnectionError(error instanceof RangeError ? error.message : inWords(error as Error));
      } finally {
        watch?.stop();
      }
    },
    close() {
      closing.abort();
      agent.destroy();
    },
  };
}

async function textOf(response: IncomingMessage, heard: () => void): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Uint8Array>) {
    heard();
    bytes += part.length;
    if (bytes > mostAnswerBytes) throw new RangeError('its answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}
