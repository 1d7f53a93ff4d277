/**
 * A real BIRD 2 as a BGP peer of an experiment: takes FlowSpec and unicast routes, announces nothing, and tells what it
 * has. Its tables stand for what a router would do.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  readBirdAttributes,
  readBirdFlow,
  type SeenAttributes,
  type SeenRoute,
  treatmentOf,
} from './bird-flow-text.ts';
import { type BirdSocket, connectBird } from './bird-socket.ts';
import { type DaemonProcess, freePort, makeFolder, startProcess, untilServing } from './daemon.ts';

export interface BirdOptions {
  /** The speaker whose peer it is. */
  readonly neighbor: { readonly address: string; readonly port: number; readonly asn: number };
  /** 64500 when absent. */
  readonly asn?: number;
  /** Its own; 127.0.0.2 when absent. Speakers know their peers by it. */
  readonly address?: string;
  readonly port?: number;
  readonly namespace?: string;
  /** A configuration of the caller's own, instead of one made of the above. */
  readonly configuration?: string;
}

export interface SeenBlackhole extends SeenAttributes {
  readonly prefix: string;
}

export interface Bird {
  readonly asn: number;
  readonly address: string;
  readonly port: number;
  /** BIRD's own command, such as `show protocols all levee`; its lines. */
  ask(command: string): Promise<string[]>;
  established(): Promise<boolean>;
  /** Of both families, sorted by their JSON texts: each is what `parseFlowrule` of core takes, and canonical behind it. */
  flowRoutes(): Promise<SeenRoute[]>;
  /** Marks and more of the FlowSpec routes, by BIRD's own text of each. */
  flowAttributes(): Promise<Map<string, SeenAttributes>>;
  /** FlowSpec routes in both tables; cheap. */
  flowCount(): Promise<number>;
  /** Unicast routes that bear the community BLACKHOLE (RFC 7999), ascending. */
  blackholes(): Promise<SeenBlackhole[]>;
  output(): string;
  start(): Promise<void>;
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Started and answering; its session comes up by itself. `bird` (Debian package bird2) must be installed. */
export async function startBird(options: BirdOptions): Promise<Bird> {
  const folder = makeFolder('bird');
  const address = options.address ?? '127.0.0.2';
  const asn = options.asn ?? 64500;
  const port = options.port ?? (await freePort(options.namespace === undefined ? address : '127.0.0.1'));
  const file = join(folder.path, 'bird.conf');
  const control = join(folder.path, 'bird.ctl');
  writeFileSync(file, options.configuration ?? configurationText({ ...options, address, asn, port }));
  let daemon: DaemonProcess | undefined;
  let socket: BirdSocket | undefined;
  const ask = async (command: string) => {
    socket ??= await connectBird(control);
    try {
      return await socket.ask(command);
    } catch (error) {
      socket.close();
      socket = undefined;
      throw error;
    }
  };
  const routesOf = async (table: string) => routesIn(await ask(`show route table ${table} all`));
  const flows = async () => [...(await routesOf('flowtab4')), ...(await routesOf('flowtab6'))];
  const kill = async () => {
    socket?.close();
    socket = undefined;
    await daemon?.kill();
  };
  const bird: Bird = {
    asn,
    address,
    port,
    ask,
    output: () => daemon?.output() ?? '',
    async established() {
      return (await ask('show protocols levee')).some((line) => line.includes('Established'));
    },
    async flowRoutes() {
      const seen = (await flows()).map(({ name, lines }) => ({
        ...readBirdFlow(name),
        ...treatmentOf(readBirdAttributes(lines).extendedCommunities),
      }));
      const texts = new Map(seen.map((route) => [route, JSON.stringify(route)]));
      return seen.sort((a, b) => ((texts.get(a) ?? '') < (texts.get(b) ?? '') ? -1 : 1));
    },
    async flowAttributes() {
      return new Map((await flows()).map(({ name, lines }) => [name, readBirdAttributes(lines)]));
    },
    async flowCount() {
      const counts = await Promise.all(
        ['flowtab4', 'flowtab6'].map(async (table) => {
          const text = (await ask(`show route count table ${table}`)).join('\n');
          return Number(/^(\d+) of \d+ routes/m.exec(text)?.[1] ?? 0);
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async blackholes() {
      const routes = [...(await routesOf('master4')), ...(await routesOf('master6'))];
      return routes
        .map(({ name, lines }) => ({ prefix: name, ...readBirdAttributes(lines) }))
        .filter(({ communities }) => communities.includes('65535:666'));
    },
    async start() {
      const started = startProcess('bird', ['-f', '-c', file, '-s', control], options.namespace);
      daemon = started;
      await untilServing(started, async () => (await ask('show status')).length > 0, 'bird');
    },
    kill,
    async remove() {
      await kill();
      folder.remove();
    },
  };
  try {
    await bird.start();
  } catch (error) {
    folder.remove();
    throw error;
  }
  return bird;
}

interface ShownRoute {
  readonly name: string;
  readonly lines: string[];
}

/** A route begins at the line's start, and its attributes follow indented. */
function routesIn(lines: readonly string[]): ShownRoute[] {
  const routes: ShownRoute[] = [];
  for (const line of lines) {
    if (line.startsWith('Table ')) continue;
    const flow = /^(flow[46] \{ .*?\s*\})\s+\[/.exec(line)?.[1];
    const prefix = /^([0-9a-f.:]+\/\d+)\s/.exec(line)?.[1];
    const name = flow ?? prefix;
    if (name !== undefined) routes.push({ name, lines: [] });
    else routes.at(-1)?.lines.push(line);
  }
  return routes;
}

function configurationText(options: BirdOptions & { address: string; asn: number; port: number }): string {
  const { address, asn, port, neighbor } = options;
  const channel = (name: string, table = '') => `  ${name} { ${table}import all; export none; };`;
  return [
    'router id 192.0.2.2;',
    'flow4 table flowtab4;',
    'flow6 table flowtab6;',
    'protocol device {}',
    'protocol bgp levee {',
    `  local ${address} port ${port} as ${asn};`,
    `  neighbor ${neighbor.address} port ${neighbor.port} as ${neighbor.asn};`,
    '  multihop;',
    '  connect delay time 1;',
    '  connect retry time 1;',
    '  error wait time 1, 2;',
    channel('ipv4'),
    channel('ipv6'),
    channel('flow4', 'table flowtab4; '),
    channel('flow6', 'table flowtab6; '),
    '}',
    '',
  ].join('\n');
}
