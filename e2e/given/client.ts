/**
 * A client as somebody writes it who has the given interface's page and nothing else: node's own http, JSON, one
 * header. Knows no schema, no extension and no error code; imports nothing of Levee.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';

export interface Result {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the page does not say more.
  readonly body: any;
}

export interface GivenClient {
  /** Sends no body, and no Content-Type, when `body` is absent. */
  send(method: string, path: string, body?: unknown): Promise<Result>;
  /** The body of an answer that must be good. */
  // biome-ignore lint/suspicious/noExplicitAny: the page does not say more.
  good(method: string, path: string, body?: unknown): Promise<any>;
  close(): void;
}

/** `baseUrl` ends in /v1; connections are kept and used again. */
export function givenClient(baseUrl: string, apiKey: string | undefined): GivenClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (method: string, path: string, body?: unknown): Promise<Result> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers: Record<string, string> = { ...(apiKey !== undefined && { 'x-api-key': apiKey }) };
      if (text !== undefined) {
        headers['content-type'] = 'application/json';
        headers['content-length'] = String(Buffer.byteLength(text));
      }
      const outgoing = request(baseUrl + path, { method, headers, agent, timeout: 30_000 }, (incoming) => {
        let answer = '';
        incoming.setEncoding('utf8').on('data', (part: string) => {
          answer += part;
        });
        incoming.on('error', reject);
        incoming.on('end', () => {
          try {
            assert.match(incoming.headers['content-type'] ?? '', /^application\/json/, `${method} ${path}`);
            resolve({ status: incoming.statusCode ?? 0, body: JSON.parse(answer) });
          } catch (error) {
            reject(error);
          }
        });
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer in 30 s`)));
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  return {
    send,
    async good(method, path, body) {
      const result = await send(method, path, body);
      assert.equal(result.status, 200, `${method} ${path} ${JSON.stringify(body)} → ${JSON.stringify(result)}`);
      return result.body;
    },
    close: () => agent.destroy(),
  };
}

/** What the page says of every error: a JSON object in which `message` is a string and `error` is present. */
export function assertError({ status, body }: Result, expected: number, what: string): void {
  assert.equal(status, expected, `${what} → ${JSON.stringify(body)}`);
  assert.equal(typeof body.message, 'string', what);
  assert.ok(body.message.length > 0, what);
  assert.ok(Object.hasOwn(body, 'error'), what);
}
