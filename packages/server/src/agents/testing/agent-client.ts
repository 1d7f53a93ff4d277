/**
 * A router's side of the agent interface as tests and benchmarks use it: plain HTTP, messages as they arrive, no
 * opinion about them.
 */
import { get, type IncomingMessage } from 'node:http';
import type { AgentFilter, AgentMessage, AgentReport, AgentRule, AgentTunnel } from '@levee/contract/agent.ts';

export interface StreamClient {
  readonly status: number;
  /** Heartbeats left out. */
  readonly messages: AgentMessage[];
  readonly heartbeats: number;
  readonly closed: boolean;
  /** The cursor last given. */
  readonly cursor: string | undefined;
  /** What a router would hold: uuid → rule. */
  readonly rules: ReadonlyMap<string, Record<string, unknown>>;
  readonly filters: ReadonlyMap<string, AgentFilter>;
  readonly tunnels: ReadonlyMap<string, AgentTunnel>;
  /** Stops reading, so that the sender's buffers fill. */
  pause(): void;
  close(): void;
}

export function openStream(base: string, key: string, after?: string): Promise<StreamClient> {
  const query = after === undefined ? '' : `?after=${after}`;
  return new Promise((resolve, reject) => {
    const request = get(
      `${base}/agent/v1/stream${query}`,
      { headers: { authorization: `Bearer ${key}` }, agent: false },
      (response) => resolve(new Client(response)),
    );
    request.on('error', reject);
  });
}

class Client implements StreamClient {
  readonly status: number;
  readonly messages: AgentMessage[] = [];
  readonly rules = new Map<string, Record<string, unknown>>();
  readonly filters = new Map<string, AgentFilter>();
  readonly tunnels = new Map<string, AgentTunnel>();
  heartbeats = 0;
  closed = false;
  cursor: string | undefined;
  readonly #response: IncomingMessage;
  #rest: string[] = [];

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#read(text));
    response.on('error', () => {});
    response.on('close', () => {
      this.closed = true;
    });
  }

  pause(): void {
    this.#response.pause();
  }

  close(): void {
    this.#response.destroy();
  }

  #read(text: string): void {
    // A line may come in hundreds of pieces: they are joined once, at its end.
    const end = text.lastIndexOf('\n');
    if (end < 0) {
      this.#rest.push(text);
      return;
    }
    const lines = (this.#rest.join('') + text.slice(0, end)).split('\n');
    this.#rest = [text.slice(end + 1)];
    for (const line of lines) this.#take(JSON.parse(line) as AgentMessage);
  }

  #take(message: AgentMessage): void {
    if (message.type === 'heartbeat') {
      this.heartbeats++;
      return;
    }
    this.messages.push(message);
    const all = [this.rules, this.filters, this.tunnels];
    if (message.type === 'snapshot_begin') for (const objects of all) objects.clear();
    if (message.type === 'rules') this.#put(message.rules);
    if (message.type === 'filters') this.#put([], message.filters);
    if (message.type === 'tunnels') this.#put([], [], message.tunnels);
    if (message.type === 'changes') {
      for (const uuid of message.remove) for (const objects of all) objects.delete(uuid);
      this.#put(message.upsert, message.filters, message.tunnels);
    }
    if (message.type === 'snapshot_end' || message.type === 'changes') this.cursor = message.cursor;
  }

  #put(rules: readonly AgentRule[], filters: readonly AgentFilter[] = [], tunnels: readonly AgentTunnel[] = []): void {
    for (const rule of rules) this.rules.set(rule.uuid, { ...rule });
    for (const filter of filters) this.filters.set(filter.uuid, filter);
    for (const tunnel of tunnels) this.tunnels.set(tunnel.uuid, tunnel);
  }
}

export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

export async function post(base: string, path: string, body: unknown, key?: string): Promise<Answered> {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  };
}

export function report(base: string, key: string, fields: Partial<AgentReport>): Promise<Answered> {
  return post(base, '/agent/v1/report', { enforcement: { mode: 'kernel' }, failures: [], ...fields }, key);
}
