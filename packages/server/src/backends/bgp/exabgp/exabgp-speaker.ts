/**
 * ExaBGP as a speaker: it runs `levee exabgp` as its process (relay.ts), which connects to the unix socket that is served
 * here. What it has is what the relay has announced; one that was run anew remembers nothing of that, though ExaBGP has it
 * all, so that whatever is to go is withdrawn whether it is known here or not.
 */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { BgpRoute, RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import type { BgpSpeaker, RoutesTaken, SpeakerSession, SpeakerTrouble, WithdrawnRoute } from '../port.ts';
import { routeCommands } from './command-text.ts';
import { readLines } from './lines.ts';
import { type RelayCommand, readFromRelay, routesALine, type ToRelay } from './relay-messages.ts';

const answerMilliseconds = 30_000;
/** With its length: of 4.2, longer FlowSpec rules exhaust the stack, and the command is never answered. */
const longestOctets = 239;

interface Remembered {
  readonly content: string;
  readonly withdraw: string;
}

interface Relay {
  readonly socket: Socket;
  readonly known: Map<RouteKey, Remembered>;
  readonly ended: Promise<string>;
  send(commands: readonly RelayCommand[]): Promise<readonly string[] | undefined>;
}

/** Serves the socket from the first connection on; a stale one is taken away. */
export function createExabgpSpeaker(socketPath: string): BgpSpeaker {
  let server: Server | undefined;
  let failure: string | undefined;
  let relay: Relay | undefined;

  function serve(): void {
    try {
      rmSync(socketPath, { force: true });
    } catch (error) {
      failure = `the socket cannot be served: ${(error as Error).message}`;
      return;
    }
    const opened = createServer((socket) => {
      // The newest is ExaBGP's present process.
      receive(socket, {
        come(from) {
          relay?.socket.destroy();
          relay = from;
          failure = undefined;
          void from.ended.then(() => {
            if (relay === from) relay = undefined;
          });
        },
        isNone() {
          failure = 'what came to the socket was no `levee exabgp`, and was closed';
        },
      });
    });
    server = opened;
    opened.on('error', (error) => {
      failure = `the socket cannot be served: ${error.message}`;
      server = undefined;
    });
    opened.listen(socketPath, () => {
      failure = undefined;
      chmodSync(socketPath, 0o660);
    });
  }

  return {
    name: 'ExaBGP',
    where: socketPath,
    async connect() {
      if (server === undefined) serve();
      if (relay === undefined) {
        return { ok: false, reason: `ExaBGP's process has not connected: ${failure ?? 'nothing came to the socket'}.` };
      }
      return { ok: true, session: sessionOf(relay) };
    },
    async close() {
      relay?.socket.destroy();
      server?.close();
      rmSync(socketPath, { force: true });
    },
  };
}

interface Arrivals {
  readonly come: (relay: Relay) => void;
  /** It does not speak as a relay does, and is closed. */
  readonly isNone: () => void;
}

function receive(socket: Socket, { come, isNone }: Arrivals): void {
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const waiting = new Map<number, (refused: readonly string[] | undefined) => void>();
  const known: Relay['known'] = new Map();
  let last = 0;
  socket.on('error', () => {});
  socket.once('close', () => {
    end("ExaBGP's process is gone.");
    for (const resolve of waiting.values()) resolve(undefined);
  });
  const refuse = () => {
    isNone();
    end('What is connected to the socket does not speak as `levee exabgp` does.');
    socket.destroy();
  };
  const heard = (line: string) => {
    if (socket.destroyed) return;
    const message = readFromRelay(line);
    if (message === undefined) {
      refuse();
      return;
    }
    if (message.type === 'done') {
      waiting.get(message.id)?.(message.refused);
      return;
    }
    for (const [key, content, withdraw] of message.routes) known.set(key as RouteKey, { content, withdraw });
    if (message.more) return;
    come({
      socket,
      known,
      ended,
      send(commands) {
        const id = ++last;
        const request: ToRelay = { id, commands };
        return new Promise((resolve) => {
          const timer = setTimeout(() => settle(undefined), answerMilliseconds);
          const settle = (refused: readonly string[] | undefined) => {
            clearTimeout(timer);
            waiting.delete(id);
            resolve(refused);
          };
          waiting.set(id, settle);
          if (socket.destroyed) settle(undefined);
          else socket.write(`${JSON.stringify(request)}\n`);
        });
      },
    });
  };
  readLines(socket, heard, refuse);
}

const gone: SpeakerTrouble = { ok: false, reason: "ExaBGP's process does not answer." };

function sessionOf({ known, ended, send, socket }: Relay): SpeakerSession {
  async function inBatches(
    commands: readonly RelayCommand[],
    taken: (command: RelayCommand) => void,
  ): Promise<RoutesTaken | SpeakerTrouble> {
    const refused = new Map<RouteKey, string>();
    for (let from = 0; from < commands.length; from += routesALine) {
      const batch = commands.slice(from, from + routesALine);
      const answer = await send(batch);
      if (answer === undefined) return gone;
      const not = new Set(answer);
      for (const command of batch) {
        if (not.has(command.key)) refused.set(command.key as RouteKey, 'ExaBGP refused it.');
        else taken(command);
      }
    }
    return { ok: true, refused };
  }
  return {
    version: 'process API, text',
    ended,
    async announce(routes: readonly BgpRoute[]) {
      const short = routes.filter(({ nlri }) => nlri.length <= longestOctets);
      const taken = await inBatches(
        short.map((route) => ({ key: route.key, content: route.content, ...routeCommands(route) })),
        ({ key, content, withdraw }) => known.set(key as RouteKey, { content, withdraw }),
      );
      if (!taken.ok) return taken;
      const long = routes.filter(({ nlri }) => nlri.length > longestOctets);
      const reason = `ExaBGP cannot take FlowSpec rules of more than ${longestOctets} octets: fewer ranges, or several rules, are needed.`;
      return {
        ok: true,
        refused: new Map([...taken.refused, ...long.map(({ key }): [RouteKey, string] => [key, reason])]),
      };
    },
    withdraw: (routes) =>
      inBatches(
        routes.flatMap((route) => withdrawalOf(route, known.get(route.key))),
        ({ key }) => known.delete(key as RouteKey),
      ),
    async list(keys = [...known.keys()]) {
      if (socket.destroyed) return gone;
      const ours = new Map<RouteKey, string>();
      for (const key of keys) {
        const content = known.get(key)?.content;
        if (content !== undefined) ours.set(key, content);
      }
      return { ok: true, ours, foreign: new Set<RouteKey>() };
    },
    peers: () => undefined,
    close: () => void socket.destroy(),
  };
}

function withdrawalOf(route: WithdrawnRoute, known: Remembered | undefined): RelayCommand[] {
  const { key } = route;
  if (known !== undefined) return [{ key, ...known }];
  if (!('nlri' in route) || route.nlri.length > longestOctets) return [];
  return [{ key, content: route.content, withdraw: routeCommands(route).withdraw }];
}
