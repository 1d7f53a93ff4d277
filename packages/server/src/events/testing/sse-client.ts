/** A client of the event stream, as plain as the format: keeps every message that it got. Test code only. */
import { get, type IncomingMessage } from 'node:http';

export interface SseMessage {
  readonly id: string | undefined;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: the data of an event.
  readonly data: any;
}

export interface SseClient {
  readonly status: number;
  readonly messages: readonly SseMessage[];
  /** Comments. */
  readonly heartbeats: number;
  readonly closed: boolean;
  /** What a browser would send as `Last-Event-ID`. */
  readonly lastId: string | undefined;
  /** Names of the messages, in their order. */
  names(): string[];
  pause(): void;
  resume(): void;
  close(): void;
}

/** Resolves with the head of the answer. `query` begins with a question mark. */
export function openSse(url: string, key: string, query = '', lastEventId?: string): Promise<SseClient> {
  const headers = { 'x-api-key': key, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
  return new Promise((resolve, reject) => {
    get(`${url}/v1/event${query}`, { headers, agent: false }, (response) => resolve(new Client(response))).on(
      'error',
      reject,
    );
  });
}

class Client implements SseClient {
  readonly status: number;
  readonly messages: SseMessage[] = [];
  heartbeats = 0;
  closed = false;
  lastId: string | undefined;
  readonly #response: IncomingMessage;
  #rest = '';

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      const blocks = (this.#rest + text).split('\n\n');
      this.#rest = blocks.pop() ?? '';
      for (const block of blocks) this.#take(block);
    });
    response.on('error', () => {});
    response.on('close', () => {
      this.closed = true;
    });
  }

  names(): string[] {
    return this.messages.map(({ event }) => event);
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) this.heartbeats++;
      else fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
    }
    const id = fields.get('id');
    if (id !== undefined) this.lastId = id;
    const data = fields.get('data');
    if (data === undefined) return;
    this.messages.push({ id, event: fields.get('event') ?? 'message', data: JSON.parse(data) });
  }
}
