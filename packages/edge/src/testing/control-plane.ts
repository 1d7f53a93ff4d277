/**
 * A control plane for the edge's tests: the agent protocol over an in-memory change log, with the accidents that tests
 * call for (restart, partition, forgotten log, lost answers). Never used outside of tests.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { AgentHit, AgentMessage, AgentReport, AgentRule, AgentTunnel } from '@levee/contract/agent.ts';
import { type AgentEntry, isAgentFilter } from '../state/objects.ts';

export interface TestControlPlane {
  readonly address: string;
  readonly key: string;
  readonly entries: ReadonlyMap<string, AgentEntry>;
  readonly tunnels: ReadonlyMap<string, AgentTunnel>;
  readonly reports: readonly AgentReport[];
  /** Sums of what was reported, a repeated (run, number) counted once. */
  readonly hits: ReadonlyMap<string, AgentHit>;
  readonly streams: number;
  /** The position of the last change. */
  readonly position: number;
  /** Up to here the edge has said that everything is in force. */
  readonly acknowledged: number;
  upsert(...objects: (AgentEntry | AgentTunnel)[]): void;
  /** `false`: from the next stream on it is one of an older release, which tells of rules alone. */
  tellAll(all: boolean): void;
  remove(...uuids: string[]): void;
  /** From now on an older cursor gets a snapshot. */
  forget(): void;
  /** Stops listening and cuts every connection; the state stays. */
  cut(): Promise<void>;
  /** Listens again, at the same address. */
  restore(): Promise<void>;
  /** Answers of so many reports to come are lost after they were processed. */
  loseAnswers(count: number): void;
  /** From now on the router's key is refused, and streams are cut; `false` makes it valid again. */
  revokeKey(revoked: boolean): void;
  /** Requests that were refused for their key. */
  readonly refusals: number;
  /** Streams stay open and say nothing more. */
  freeze(): void;
  close(): Promise<void>;
}

interface Watcher {
  readonly response: ServerResponse;
  /** Rules, filters and tunnels; else rules alone. */
  readonly all: boolean;
  at: number;
}

const objectsPerLine = 1000;
const isTunnel = (object: AgentEntry | AgentTunnel): object is AgentTunnel => 'endpoint' in object;
const isRule = (entry: AgentEntry): entry is AgentRule => !isAgentFilter(entry);

/** On a unix socket when a path is given, else on a free port of loopback. */
export async function startControlPlane(options: { socketPath?: string; heartbeatMs?: number } = {}) {
  const key = 'lv_r_testtesttesttesttest_000000';
  const entries = new Map<string, AgentEntry>();
  const tunnels = new Map<string, AgentTunnel>();
  const log: { position: number; uuid: string }[] = [];
  const reports: AgentReport[] = [];
  const hits = new Map<string, AgentHit>();
  const counted = new Set<string>();
  const watchers = new Set<Watcher>();
  const sockets = new Set<Socket>();
  let position = 0;
  let oldest = 0;
  let acknowledged = -1;
  let lost = 0;
  let frozen = false;
  let tellsAll = true;
  let revoked = false;
  let refusals = 0;
  let server: Server;
  let port = 0;

  const say = (watcher: Watcher, message: AgentMessage): void => {
    watcher.response.write(`${JSON.stringify(message)}\n`);
  };
  const catchUp = (watcher: Watcher): void => {
    if (frozen || watcher.at >= position) return;
    const named = new Set(log.filter((entry) => entry.position > watcher.at).map((entry) => entry.uuid));
    const changed = [...named].flatMap((uuid) => entries.get(uuid) ?? []);
    const upsert = changed.filter(isRule);
    const remove = [...named].filter((uuid) => !entries.has(uuid) && !tunnels.has(uuid));
    watcher.at = position;
    const cursor = `1.${position}`;
    if (!watcher.all) {
      say(watcher, { type: 'changes', cursor, upsert, remove });
      return;
    }
    const filters = changed.filter(isAgentFilter);
    const changedTunnels = [...named].flatMap((uuid) => tunnels.get(uuid) ?? []);
    say(watcher, {
      type: 'changes',
      cursor,
      upsert,
      ...(filters.length > 0 ? { filters } : {}),
      ...(changedTunnels.length > 0 ? { tunnels: changedTunnels } : {}),
      remove,
    });
  };
  const inLines = <T>(objects: readonly T[], write: (page: T[]) => void): void => {
    for (let at = 0; at < objects.length; at += objectsPerLine) write(objects.slice(at, at + objectsPerLine));
  };
  const sendSnapshot = (watcher: Watcher): void => {
    say(watcher, { type: 'snapshot_begin' });
    const all = [...entries.values()];
    inLines(all.filter(isRule), (rules) => say(watcher, { type: 'rules', rules }));
    if (watcher.all) {
      inLines(all.filter(isAgentFilter), (filters) => say(watcher, { type: 'filters', filters }));
      inLines([...tunnels.values()], (page) => say(watcher, { type: 'tunnels', tunnels: page }));
    }
    watcher.at = position;
    say(watcher, { type: 'snapshot_end', cursor: `1.${position}` });
  };
  const openStream = (url: URL, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    const after = url.searchParams.get('after');
    const at = after === null ? -1 : Number(after.split('.')[1]);
    const watcher: Watcher = { response, all: tellsAll, at };
    watchers.add(watcher);
    response.on('close', () => watchers.delete(watcher));
    say(watcher, {
      type: 'hello',
      router: { uuid: '00000000-0000-7000-8000-000000000001', name: 'r1', location: 'here' },
      heartbeat_s: 5,
      ...(watcher.all ? { tells: ['rules', 'filters', 'tunnels'] } : {}),
    });
    if (at < oldest) sendSnapshot(watcher);
    else catchUp(watcher);
  };
  const takeReport = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const report = JSON.parse(Buffer.concat(chunks).toString()) as AgentReport;
    reports.push(report);
    if (report.cursor !== undefined) acknowledged = Number(report.cursor.split('.')[1]);
    if (report.counters) {
      const name = `${report.counters.run} ${report.counters.number}`;
      if (!counted.has(name)) {
        counted.add(name);
        for (const hit of report.counters.hits) {
          const known = hits.get(hit.uuid);
          hits.set(hit.uuid, {
            ...hit,
            packets: hit.packets + (known?.packets ?? 0),
            bytes: hit.bytes + (known?.bytes ?? 0),
          });
        }
      }
    }
    if (lost > 0) {
      lost -= 1;
      request.socket.destroy();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (revoked || request.headers.authorization !== `Bearer ${key}`) {
      refusals += 1;
      response.writeHead(401).end('{}');
    } else if (url.pathname === '/agent/v1/stream') openStream(url, response);
    else if (url.pathname === '/agent/v1/report') takeReport(request, response).catch(() => request.socket.destroy());
    else response.writeHead(404).end('{}');
  };
  const listen = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server = createServer(handle);
      server.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      server.on('error', reject);
      if (options.socketPath) server.listen(options.socketPath, resolve);
      else
        server.listen(port, '127.0.0.1', () => {
          port = (server.address() as AddressInfo).port;
          resolve();
        });
    });
  const cut = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  const record = (uuids: readonly string[]): void => {
    for (const uuid of uuids) {
      position += 1;
      log.push({ position, uuid });
    }
    for (const watcher of watchers) catchUp(watcher);
  };

  await listen();
  const heartbeat = setInterval(() => {
    if (!frozen) for (const watcher of watchers) say(watcher, { type: 'heartbeat' });
  }, options.heartbeatMs ?? 5000);

  const controlPlane: TestControlPlane = {
    get address() {
      return options.socketPath ? `unix:${options.socketPath}` : `http://127.0.0.1:${port}`;
    },
    key,
    entries,
    tunnels,
    reports,
    hits,
    get streams() {
      return watchers.size;
    },
    get position() {
      return position;
    },
    get acknowledged() {
      return acknowledged;
    },
    upsert(...changed) {
      for (const object of changed) {
        if (isTunnel(object)) tunnels.set(object.uuid, object);
        else entries.set(object.uuid, object);
      }
      record(changed.map(({ uuid }) => uuid));
    },
    remove(...uuids) {
      for (const uuid of uuids) {
        entries.delete(uuid);
        tunnels.delete(uuid);
      }
      record(uuids);
    },
    tellAll(all) {
      tellsAll = all;
    },
    forget() {
      oldest = position + 1;
      log.length = 0;
    },
    cut,
    restore: listen,
    loseAnswers(count) {
      lost = count;
    },
    revokeKey(now) {
      revoked = now;
      if (revoked) for (const { response } of watchers) response.destroy();
    },
    get refusals() {
      return refusals;
    },
    freeze() {
      frozen = true;
    },
    async close() {
      clearInterval(heartbeat);
      await cut();
    },
  };
  return controlPlane;
}
