/**
 * Tells secondaries that a zone has changed (RFC 1996), over UDP, again and again with growing pauses until each has
 * acknowledged. Changes that come together are told once. Owns no zones: it is told names and reads what is served
 * when it sends.
 */
import { randomInt } from 'node:crypto';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { DnsCounters } from './counters.ts';
import { MessageWriter } from './message-writer.ts';
import { canonicalPeer } from './peer-address.ts';
import { flags, headerBytes, opcodes, plainUdpBytes, types } from './protocol.ts';
import { u16 } from './query.ts';
import type { ServedZone } from './served-zones.ts';
import type { Secondary } from './zone-source.ts';

export interface SecondaryState extends Secondary {
  /** What it last acknowledged to have been told of, by this process. */
  readonly acknowledgedSerial: number | undefined;
  /** What it last took whole from this process. */
  readonly transferredSerial: number | undefined;
  /** Told so often since the last acknowledgement. */
  readonly unanswered: number;
  /** The answer's code when it was another than NOERROR, or what the system said. */
  readonly problem: string | undefined;
}

export interface Notifier {
  /** The zone is new, different or gone. */
  changed(zoneName: string): void;
  transferred(zoneName: string, serial: number, address: string): void;
  /** Nothing for a zone that is not served. */
  states(zoneName: string): SecondaryState[];
  stop(): Promise<void>;
}

export interface NotifierOptions {
  readonly zone: (name: string) => ServedZone | undefined;
  /** Where the server listens: secondaries believe a notification from an address that they know. */
  readonly hosts: readonly string[];
  readonly counters: DnsCounters;
  readonly warn: (message: string) => void;
  readonly pace?: NotifyPace;
}

/** Milliseconds. */
export interface NotifyPace {
  /** From a change to telling of it and what else has changed until then. */
  readonly gather: number;
  /** Between two notifications of one zone to one secondary, at least, while they are acknowledged. */
  readonly apart: number;
  /** To the first repetition; each further pause is twice as long. */
  readonly repeat: number;
  readonly repeatAtMost: number;
  /** Between any two datagrams: a start with a thousand zones is no flood. */
  readonly datagrams: number;
}

const usualPace: NotifyPace = { gather: 20, apart: 500, repeat: 1000, repeatAtMost: 60_000, datagrams: 2 };

/** A warning once it has gone unanswered so often, about 30 s. */
const warnAfter = 5;

interface Target {
  readonly zoneName: string;
  /** The address canonical. */
  readonly secondary: Secondary;
  /** The serial that it must be told of; undefined: it knows. */
  wanted: number | undefined;
  acknowledgedSerial: number | undefined;
  transferredSerial: number | undefined;
  /** What is under way. */
  sent: { readonly id: number; readonly serial: number } | undefined;
  lastSent: number;
  unanswered: number;
  /** The pause after the next sending, once it is doubled so often. */
  doublings: number;
  problem: string | undefined;
  timer: NodeJS.Timeout | undefined;
}

export function createNotifier(options: NotifierOptions): Notifier {
  return new Telling(options);
}

class Telling implements Notifier {
  readonly #options: NotifierOptions;
  readonly #pace: NotifyPace;
  /** Zone → address and port → what is known of it. */
  readonly #zones = new Map<string, Map<string, Target>>();
  readonly #sockets = new Map<string, Socket>();
  /** Under way, by identifier, address and port. */
  readonly #awaited = new Map<string, Target>();
  readonly #writer = new MessageWriter();
  #nextDatagram = 0;
  #stopped = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#pace = options.pace ?? usualPace;
  }

  changed(zoneName: string): void {
    if (this.#stopped) return;
    const settings = this.#options.zone(zoneName)?.settings;
    const former = this.#zones.get(zoneName) ?? new Map<string, Target>();
    const targets = new Map<string, Target>();
    for (const secondary of settings?.secondaries ?? []) {
      const place = { address: canonicalPeer(secondary.address), port: secondary.port };
      const key = `${place.address} ${place.port}`;
      targets.set(key, former.get(key) ?? newTarget(zoneName, place));
    }
    for (const [key, target] of former) if (!targets.has(key)) this.#forget(target);
    if (targets.size === 0) this.#zones.delete(zoneName);
    else this.#zones.set(zoneName, targets);
    for (const target of targets.values()) {
      if (target.acknowledgedSerial === settings?.serial) continue;
      const isIdle = target.wanted === undefined;
      target.wanted = settings?.serial;
      // What waits goes out soon, what was just sent is answered or repeated soon; a later repetition is far away.
      if (isIdle || target.doublings > 0) this.#wake(target, this.#soon(target));
      target.doublings = 0;
    }
  }

  transferred(zoneName: string, serial: number, address: string): void {
    for (const target of this.#zones.get(zoneName)?.values() ?? []) {
      if (target.secondary.address === address) target.transferredSerial = serial;
    }
  }

  states(zoneName: string): SecondaryState[] {
    return Array.from(this.#zones.get(zoneName)?.values() ?? [], (target) => {
      const { secondary, acknowledgedSerial, transferredSerial, unanswered, problem } = target;
      return { ...secondary, acknowledgedSerial, transferredSerial, unanswered, problem };
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const targets of this.#zones.values()) for (const target of targets.values()) this.#forget(target);
    this.#zones.clear();
    const sockets = [...this.#sockets.values()];
    this.#sockets.clear();
    await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
  }

  #soon(target: Target): number {
    return Math.max(this.#pace.gather, target.lastSent + this.#pace.apart - performance.now());
  }

  #wake(target: Target, milliseconds: number): void {
    clearTimeout(target.timer);
    target.timer = setTimeout(() => this.#due(target), milliseconds);
  }

  #due(target: Target): void {
    const now = performance.now();
    if (now < this.#nextDatagram) {
      this.#wake(target, this.#nextDatagram - now);
      return;
    }
    this.#nextDatagram = now + this.#pace.datagrams;
    this.#send(target);
  }

  #send(target: Target): void {
    const zone = this.#options.zone(target.zoneName);
    if (zone === undefined || target.wanted === undefined) return;
    const { address, port } = target.secondary;
    // A repetition has a new number: an answer to the former is an answer to what was said then.
    this.#release(target);
    const id = randomInt(0x1_0000);
    target.sent = { id, serial: zone.settings.serial };
    target.lastSent = performance.now();
    this.#awaited.set(awaitedKey(id, address, port), target);
    this.#options.counters.notifications.sent += 1;
    this.#socketFor(address).send(this.#message(id, zone), port, address, (error) => {
      if (error !== null) target.problem = error.message;
    });
    clearTimeout(target.timer);
    const pause = Math.min(this.#pace.repeat * 2 ** target.doublings, this.#pace.repeatAtMost);
    target.timer = setTimeout(() => this.#silent(target), pause);
  }

  #silent(target: Target): void {
    const { counters, warn } = this.#options;
    const { address, port } = target.secondary;
    counters.notifications.unanswered += 1;
    target.unanswered += 1;
    target.doublings += 1;
    if (target.unanswered === warnAfter) {
      const why = target.problem ?? 'no answer';
      warn(`zone ${target.zoneName}: secondary ${address} port ${port} does not acknowledge changes: ${why}`);
    }
    this.#due(target);
  }

  #received(message: Buffer, from: RemoteInfo): void {
    if (message.length < headerBytes) return;
    const word = u16(message, 2);
    if ((word & flags.response) === 0 || ((word >>> 11) & 15) !== opcodes.notify) return;
    const target = this.#awaited.get(awaitedKey(u16(message, 0), canonicalPeer(from.address), from.port));
    const sent = target?.sent;
    if (target === undefined || sent === undefined) return;
    const rcode = word & 15;
    if (rcode !== 0) {
      // It may be told to take the zone from us at any time: repeated like silence.
      target.problem = `answered with code ${rcode} to NOTIFY`;
      return;
    }
    this.#options.counters.notifications.acknowledged += 1;
    this.#release(target);
    clearTimeout(target.timer);
    target.acknowledgedSerial = sent.serial;
    target.unanswered = 0;
    target.doublings = 0;
    target.problem = undefined;
    if (target.wanted === sent.serial) target.wanted = undefined;
    else this.#wake(target, this.#soon(target));
  }

  #message(id: number, zone: ServedZone): Buffer {
    const { settings } = zone;
    const writer = this.#writer;
    const buffer = Buffer.alloc(plainUdpBytes);
    writer.start(buffer, plainUdpBytes, id, (opcodes.notify << 11) | flags.authoritative);
    writer.question(settings.name, types.soa);
    // RFC 1996, 3.7: a hint; left out where it does not fit.
    writer.startOfAuthority('answer', settings.name, settings.ttlSeconds, settings);
    return writer.finish();
  }

  #forget(target: Target): void {
    clearTimeout(target.timer);
    this.#release(target);
    target.wanted = undefined;
  }

  #release(target: Target): void {
    const { sent, secondary } = target;
    if (sent !== undefined) this.#awaited.delete(awaitedKey(sent.id, secondary.address, secondary.port));
    target.sent = undefined;
  }

  #socketFor(address: string): Socket {
    const isSix = address.includes(':');
    const host = this.#options.hosts.find((host) => host.includes(':') === isSix && mayReach(host, address));
    const key = host ?? (isSix ? '::' : '0.0.0.0');
    const present = this.#sockets.get(key);
    if (present !== undefined) return present;
    const socket = createSocket(isSix ? 'udp6' : 'udp4');
    socket.on('error', (error) => this.#options.warn(`DNS notifications from ${key}: ${error.message}`));
    socket.on('message', (message, from) => this.#received(message, from));
    socket.bind({ address: key, port: 0 });
    this.#sockets.set(key, socket);
    return socket;
  }
}

function newTarget(zoneName: string, secondary: Secondary): Target {
  return {
    zoneName,
    secondary,
    wanted: undefined,
    acknowledgedSerial: undefined,
    transferredSerial: undefined,
    sent: undefined,
    lastSent: Number.NEGATIVE_INFINITY,
    unanswered: 0,
    doublings: 0,
    problem: undefined,
    timer: undefined,
  };
}

function awaitedKey(id: number, address: string, port: number): string {
  return `${id} ${address} ${port}`;
}

/** From a loopback address nothing leaves the machine. */
function mayReach(host: string, address: string): boolean {
  return isLoopback(address) || !isLoopback(host);
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address);
}
