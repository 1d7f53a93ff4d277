/** A server that webhooks are sent to: keeps what it got, answers as it is told to. Test code only. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly atMilliseconds: number;
}

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** The largest number of requests that were open at once. */
  readonly mostAtOnce: number;
  answer(with_: (response: ServerResponse, number: number) => void): void;
  close(): Promise<void>;
}

/** Answers 204 until told otherwise. `port`: to come back where another one was. */
export async function startReceiver(port = 0, host = '127.0.0.1'): Promise<Receiver> {
  const received: Received[] = [];
  let answer = (response: ServerResponse, _number: number): void => void response.writeHead(204).end();
  let open = 0;
  let mostAtOnce = 0;
  const server = createServer((request, response) => {
    mostAtOnce = Math.max(mostAtOnce, ++open);
    response.on('close', () => open--);
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      const { url = '', headers } = request;
      received.push({ path: url, headers, text, atMilliseconds: Date.now() });
      answer(response, received.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const taken = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}/hook`,
    port: taken,
    received,
    get mostAtOnce() {
      return mostAtOnce;
    },
    answer(with_) {
      answer = with_;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
