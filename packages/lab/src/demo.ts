/**
 * `levee lab`: a real flood against a real customer behind a real router, and a rule that stops it, posted to a
 * running Levee whose edge works in the router's namespace. Owns the experiment and its figures. Must never know how
 * Levee is started, and never leave a namespace, a flood or a rule behind.
 */
import { DemoDisplay, type DemoOutput } from './demo-display.ts';
import {
  demoPrefixes,
  demoTarget,
  floodFrames,
  floodPort,
  gameFrames,
  onlyGame,
  onlyMarkedFlood,
} from './demo-traffic.ts';
import { type Flood, startFlood } from './flood.ts';
import { labObstacle } from './namespace.ts';
import { openPacketSocket, type PacketSocket } from './packet-socket.ts';
import { device, RouterPath } from './router-path.ts';

/** What a running Levee must offer to the lab. */
export interface LabControl {
  /** The interface's address, with its version segment: `http://127.0.0.1:8080/v1`. */
  readonly baseUrl: string;
  /** An API key that may create rules for every address in the prefixes given to `startLevee`. */
  readonly key: string;
  stop(): Promise<void>;
}

export interface LabPlace {
  /** Name of the namespace in which the edge must work (`LEVEE_EDGE_NETNS`). */
  readonly routerNetns: string;
  /** The router's devices on which attacks arrive. */
  readonly ingressDevices: readonly string[];
  /** The customer's prefixes: the key's account must hold them. */
  readonly prefixes: readonly string[];
}

export interface LabOptions {
  /** Called once the namespaces stand. When it throws, the lab is taken down and the exception passed on. */
  startLevee(place: LabPlace): Promise<LabControl>;
  output: DemoOutput;
  /** Ends the demonstration early and cleanly; SIGINT and SIGTERM do so too. */
  signal?: AbortSignal;
  /** Flood without the rule, with it, and without it again. */
  secondsBefore?: number;
  secondsWithRule?: number;
  secondsAfter?: number;
  floodPacketsPerSecond?: number;
}

export interface LabResult {
  readonly interrupted: boolean;
  /** From sending the request to the API's answer. */
  readonly answerMs?: number;
  /** From the API's answer to the last flood packet that reached the customer; below 0 when it came before. */
  readonly stoppedMs?: number;
  /** From the answer to the deletion to the first flood packet that reached the customer again. */
  readonly resumedMs?: number;
  readonly seconds: readonly LabSecond[];
}

/** One second of the experiment, packets in that second. */
export interface LabSecond {
  readonly phase: 'flood' | 'rule' | 'after';
  readonly arrived: number;
  readonly dropped: number;
  readonly delivered: number;
  readonly legitimateSent: number;
  readonly legitimateDelivered: number;
}

const customerLine = '50mbit';
const gamePacketsPerSecond = 1000;
const tickMs = 5;

export async function runLab(options: LabOptions): Promise<LabResult> {
  const obstacle = labObstacle();
  if (obstacle) throw new Error(`the lab cannot run here: ${obstacle}`);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  const follow = options.signal ?? stop.signal;
  follow.addEventListener('abort', onSignal);
  if (options.signal?.aborted) stop.abort();
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    return await inPlace(options, stop.signal);
  } finally {
    follow.removeEventListener('abort', onSignal);
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
}

async function inPlace(options: LabOptions, signal: AbortSignal): Promise<LabResult> {
  const display = new DemoDisplay(options.output);
  using path = new RouterPath({ protectedPrefixes: demoPrefixes, label: 'demo' });
  const line = limitCustomerLine(path);
  display.place(path, line);
  const control = await options.startLevee({
    routerNetns: path.router.name,
    ingressDevices: [device.routerOutside],
    prefixes: demoPrefixes,
  });
  try {
    const experiment = new Experiment(path, control, display, signal, options);
    return await experiment.run();
  } finally {
    display.say('Stopping.');
    await control.stop();
  }
}

/** A line that a flood can fill: without it the customer would just take everything. */
function limitCustomerLine(path: RouterPath): string | undefined {
  try {
    const tc = (line: string): string => path.router.run('tc', line.split(' '));
    tc(`qdisc add dev ${device.routerInside} root handle 1: tbf rate ${customerLine} burst 32k limit 1m`);
    // A queue of packets, not bytes: else the players' small packets slip into gaps that the flood's do not fit.
    tc(`qdisc add dev ${device.routerInside} parent 1: pfifo limit 100`);
    return customerLine.replace('mbit', ' Mbit/s');
  } catch {
    return undefined; // a kernel without tbf: everything fits, the rule's effect is seen all the same
  }
}

class Experiment {
  private readonly path: RouterPath;
  private readonly control: LabControl;
  private readonly display: DemoDisplay;
  private readonly signal: AbortSignal;
  private readonly options: LabOptions;
  private readonly seconds: LabSecond[] = [];
  private gameArrived = 0;
  private lastFloodAt = 0;
  private firstFloodAfterDelete: number | undefined;
  private deletedAt: number | undefined;

  constructor(path: RouterPath, control: LabControl, display: DemoDisplay, signal: AbortSignal, options: LabOptions) {
    this.path = path;
    this.control = control;
    this.display = display;
    this.signal = signal;
    this.options = options;
  }

  async run(): Promise<LabResult> {
    const { path, options } = this;
    const before = options.secondsBefore ?? 3;
    const withRule = options.secondsWithRule ?? 5;
    const after = options.secondsAfter ?? 3;
    const rate = options.floodPacketsPerSecond ?? 100_000;
    using game = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 64, only: onlyGame });
    using marked = openPacketSocket(path.customer, {
      device: device.customer,
      receiveBytes: 64,
      only: onlyMarkedFlood,
    });
    const attacker = { namespace: path.attacker.name, device: device.attacker };
    const longest = before + withRule + after + 30;
    const players = startFlood({
      ...attacker,
      frames: gameFrames(),
      packetsPerSecond: gamePacketsPerSecond,
      seconds: longest,
    });
    const flood = startFlood({ ...attacker, frames: floodFrames(), packetsPerSecond: rate, seconds: longest });
    let ruleUuid: string | undefined;
    let answerMs: number | undefined;
    let answeredAt: number | undefined;
    let stoppedMs: number | undefined;
    try {
      this.display.header();
      await this.watch('flood', before, flood, players, game, marked);
      if (!this.signal.aborted) {
        const asked = performance.now();
        ruleUuid = await this.postRule();
        answeredAt = performance.now();
        answerMs = answeredAt - asked;
        this.display.posted(answerMs);
        await this.watch('rule', withRule, flood, players, game, marked);
        // Still flowing at the end of the phase means: not stopped at all.
        if (performance.now() - this.lastFloodAt > 500) {
          stoppedMs = this.lastFloodAt - answeredAt;
          this.display.stopped(stoppedMs);
        }
      }
      if (!this.signal.aborted && ruleUuid !== undefined) {
        await this.deleteRule(ruleUuid);
        this.deletedAt = performance.now();
        ruleUuid = undefined;
        this.display.say('DELETE /firewall/rule/{uuid}: the rule is marked for deletion.');
        await this.watch('after', after, flood, players, game, marked);
      }
    } finally {
      if (ruleUuid !== undefined) await this.deleteRule(ruleUuid).catch(() => undefined);
      await Promise.allSettled([flood.stop(), players.stop()]);
    }
    const resumedMs =
      this.deletedAt !== undefined && this.firstFloodAfterDelete !== undefined
        ? this.firstFloodAfterDelete - this.deletedAt
        : undefined;
    const result: LabResult = {
      interrupted: this.signal.aborted,
      seconds: this.seconds,
      ...(answerMs === undefined ? {} : { answerMs }),
      ...(stoppedMs === undefined ? {} : { stoppedMs }),
      ...(resumedMs === undefined ? {} : { resumedMs }),
    };
    this.display.summary(result);
    return result;
  }

  /** Watches for whole seconds, shows and keeps each. */
  private async watch(
    phase: LabSecond['phase'],
    seconds: number,
    flood: Flood,
    players: Flood,
    game: PacketSocket,
    marked: PacketSocket,
  ): Promise<void> {
    for (let second = 0; second < seconds && !this.signal.aborted; second++) {
      const start = this.sample(players);
      const started = performance.now();
      let shownAt = started;
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, tickMs));
        const now = performance.now();
        this.gameArrived += game.receive(() => undefined);
        if (marked.receive(() => undefined) > 0) {
          this.lastFloodAt = now;
          if (this.deletedAt !== undefined) this.firstFloodAfterDelete ??= now;
        }
        const over = now - started >= 1000 || this.signal.aborted;
        if (over || now - shownAt >= 200) {
          shownAt = now;
          const current = difference(phase, start, this.sample(players), (now - started) / 1000);
          this.display.second(current, over);
          if (over) this.seconds.push(current);
        }
        if (over) break;
      }
      await failEarly(flood);
    }
  }

  private sample(players: Flood): Sample {
    const outside = this.path.router.deviceCounters(device.routerOutside);
    const customer = this.path.customer.deviceCounters(device.customer);
    return {
      arrived: outside.receivedPackets,
      delivered: customer.receivedPackets,
      legitimateSent: players.sent(),
      legitimateDelivered: this.gameArrived,
    };
  }

  private async postRule(): Promise<string> {
    const response = await this.ask('POST', '/firewall/rule', {
      dst: demoTarget,
      protocol: 'udp',
      port: { src: { start: floodPort, end: floodPort } },
      action: 'drop',
      descr: 'lab: answers of time servers that nobody asked',
    });
    const uuid = (response as { uuid?: unknown }).uuid;
    if (typeof uuid !== 'string') throw new Error(`the created rule has no uuid: ${JSON.stringify(response)}`);
    return uuid;
  }

  private async deleteRule(uuid: string): Promise<void> {
    await this.ask('DELETE', `/firewall/rule/${uuid}`);
  }

  private async ask(method: string, route: string, body?: object): Promise<unknown> {
    const response = await fetch(`${this.control.baseUrl}${route}`, {
      method,
      headers: { 'x-api-key': this.control.key, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return JSON.parse(text);
  }
}

interface Sample {
  readonly arrived: number;
  readonly delivered: number;
  readonly legitimateSent: number;
  readonly legitimateDelivered: number;
}

/** Packets between two samples, as a second's worth. */
function difference(phase: LabSecond['phase'], start: Sample, end: Sample, seconds: number): LabSecond {
  const rate = (key: keyof Sample): number => Math.round((end[key] - start[key]) / seconds);
  const arrived = rate('arrived');
  const delivered = rate('delivered');
  return {
    phase,
    arrived,
    delivered,
    dropped: Math.max(0, arrived - delivered),
    legitimateSent: rate('legitimateSent'),
    legitimateDelivered: rate('legitimateDelivered'),
  };
}

/** A sender that died must end the demonstration, not show a quiet wire. */
async function failEarly(flood: Flood): Promise<void> {
  await Promise.race([flood.finished, new Promise((resolve) => setImmediate(resolve))]);
}
