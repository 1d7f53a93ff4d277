/**
 * The address of a control plane, and one HTTP exchange with it. Owns what an address may look like and the time that
 * an exchange may take; knows no path and no message.
 */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface Endpoint {
  /** As configured; for logs. */
  readonly text: string;
  readonly secure: boolean;
  readonly options: RequestOptions;
}

export type ParsedEndpoint =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly reason: string };

/** `http://host:port`, `https://host:port` or `unix:/absolute/path`. */
export function parseEndpoint(text: string): ParsedEndpoint {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    if (!path.startsWith('/')) return { ok: false, reason: `${text}: the path of a unix socket must be absolute` };
    return { ok: true, endpoint: { text, secure: false, options: { socketPath: path, host: 'localhost' } } };
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { ok: false, reason: `${text}: not an address (http://host:port or unix:/path)` };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { ok: false, reason: `${text}: ${url.protocol} is none of http:, https:, unix:` };
  }
  if (url.pathname !== '/' || url.search !== '' || url.username !== '') {
    return { ok: false, reason: `${text}: only scheme, host and port belong into the address` };
  }
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { ok: true, endpoint: { text, secure, options: { host, port: url.port || (secure ? 443 : 80) } } };
}

/** Throws on the first address that is not one, or when there is none. */
export function parseEndpoints(texts: readonly string[]): Endpoint[] {
  if (texts.length === 0) throw new RangeError('no address of a control plane');
  return texts.map((text) => {
    const parsed = parseEndpoint(text);
    if (!parsed.ok) throw new RangeError(parsed.reason);
    return parsed.endpoint;
  });
}

/** Opens a request; the caller writes and ends it. */
export function openRequest(endpoint: Endpoint, options: RequestOptions): ClientRequest {
  return (endpoint.secure ? httpsRequest : httpRequest)({ ...endpoint.options, ...options });
}

export interface Exchange {
  readonly status: number;
  readonly body: string;
}

/** Reports are short; an answer beyond this is not from a control plane. */
const longestAnswerBytes = 1 << 20;

export interface Caller {
  /** Rejects when the network, not the control plane, says no: refused, reset, timed out. */
  post(endpoint: Endpoint, path: string, headers: Record<string, string>, body: unknown): Promise<Exchange>;
  close(): void;
}

/** Keeps one connection an address open between exchanges. */
export function createCaller(timeoutMilliseconds: number): Caller {
  const plain = new HttpAgent({ keepAlive: true, maxSockets: 1 });
  const secure = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  return {
    post: (endpoint, path, headers, body) =>
      new Promise((resolve, reject) => {
        const text = Buffer.from(JSON.stringify(body));
        const call = openRequest(endpoint, {
          method: 'POST',
          path,
          agent: endpoint.secure ? secure : plain,
          headers: { 'content-type': 'application/json', 'content-length': text.length, ...headers },
        });
        const deadline = setTimeout(() => call.destroy(new Error('no answer in time')), timeoutMilliseconds);
        const settle = (finish: () => void): void => {
          clearTimeout(deadline);
          finish();
        };
        call.on('error', (error) => settle(() => reject(error)));
        call.on('response', (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on('data', (chunk: Buffer) => {
            size += chunk.length;
            if (size > longestAnswerBytes) call.destroy(new Error('the answer is too long'));
            else chunks.push(chunk);
          });
          response.on('error', (error) => settle(() => reject(error)));
          response.on('end', () =>
            settle(() => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() })),
          );
        });
        call.end(text);
      }),
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}
