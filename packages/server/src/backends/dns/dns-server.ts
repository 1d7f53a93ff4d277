/**
 * The embedded authoritative DNS server: binds its addresses, joins listeners, zones and notifications, and answers
 * from the zones that its source pushes. Never asks anyone anything, and no message can make it throw.
 */
import { lookup } from 'node:dns/promises';
import { type Asker, answerMessage, type Reply } from './answer.ts';
import { createCounters, type DnsCounters } from './counters.ts';
import { createNotifier, type NotifyPace, type SecondaryState } from './notifier.ts';
import { canonicalPeer } from './peer-address.ts';
import { flags, headerBytes, rcodes } from './protocol.ts';
import { createResponseLimit, type ResponseLimit } from './response-limit.ts';
import { createServedZones, type ServedZones } from './served-zones.ts';
import { listenTcp, type TcpLimits, type TcpListener, usualTcpLimits } from './tcp-listener.ts';
import { listenUdp, type UdpListener } from './udp-listener.ts';
import type { ZoneSink, ZoneSource } from './zone-source.ts';

export interface DnsAddress {
  readonly host: string;
  /** UDP and TCP alike. */
  readonly port: number;
}

export interface DnsServerOptions {
  /** At least one; port 0: any. */
  readonly listen: readonly DnsAddress[];
  readonly source: ZoneSource;
  /** Over UDP, to one network; 0: no limit. */
  readonly answersPerSecond: number;
  readonly warn: (message: string) => void;
  readonly logError: (error: unknown, message: string) => void;
  readonly tcpLimits?: TcpLimits;
  readonly notifyPace?: NotifyPace;
}

export interface DnsServer {
  /** With the ports that were really taken. */
  readonly addresses: readonly DnsAddress[];
  readonly counters: DnsCounters;
  /** Of the zone as it is answered from at this moment; undefined: not served here. */
  servedSerial(zoneName: string): number | undefined;
  /** What is known of who takes copies of the zone. */
  secondaries(zoneName: string): SecondaryState[];
  /** Closes everything at once. Idempotent. */
  stop(): Promise<void>;
}

export type DnsStart =
  | { readonly ok: true; readonly dns: DnsServer }
  /** For the person who started it. */
  | { readonly ok: false; readonly message: string };

export async function startDnsServer(options: DnsServerOptions): Promise<DnsStart> {
  const { listen, source, warn, logError } = options;
  const counters = createCounters();
  const zones = createServedZones();
  const undo: (() => unknown)[] = [];
  const stop = async () => {
    const steps = undo.splice(0);
    await Promise.all(steps.map((step) => step()));
  };
  const hosts: string[] = [];
  for (const { host } of listen) {
    const found = await lookup(host).catch((error: Error) => error);
    if (found instanceof Error) return { ok: false, message: `cannot serve DNS on ${host}: ${found.message}` };
    hosts.push(found.address);
  }
  const notifier = createNotifier({
    zone: (name) => zones.get(name),
    hosts,
    counters,
    warn,
    ...(options.notifyPace && { pace: options.notifyPace }),
  });
  undo.push(() => notifier.stop());
  // Before the first question: a secondary that is refused a zone waits long before it asks again.
  undo.push(source.subscribe(tolerant(zones, logError)));

  const answer = carefully(zones, options, counters);
  const limit = createResponseLimit(options.answersPerSecond, crypto.getRandomValues(new Uint32Array(3)));
  const addresses: DnsAddress[] = [];
  for (const [index, { port }] of listen.entries()) {
    const host = hosts[index] ?? '';
    try {
      const pair = await bindBoth({ host, port, limit, counters, answer, options, notifier });
      undo.push(
        () => pair.udp.stop(),
        () => pair.tcp.stop(),
      );
      addresses.push({ host, port: pair.tcp.port });
    } catch (error) {
      await stop();
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      return { ok: false, message: `cannot serve DNS on ${hostAndPort(host, port)}: ${message}` };
    }
  }
  // After the first answer can be given: whoever is told asks at once.
  zones.onChange((zoneName) => notifier.changed(zoneName));
  for (const { settings } of zones.all()) notifier.changed(settings.name);
  const dns: DnsServer = {
    addresses,
    counters,
    servedSerial: (zoneName) => zones.get(zoneName)?.settings.serial,
    secondaries: (zoneName) => notifier.states(zoneName),
    stop,
  };
  return { ok: true, dns };
}

/** What cannot be served is said and left out: one zone must not take the others, or their source, down with it. */
function tolerant(zones: ServedZones, logError: DnsServerOptions['logError']): ZoneSink {
  return {
    replace(zone, records) {
      try {
        zones.replace(zone, records);
      } catch (error) {
        logError(error, `zone ${zone.name} cannot be served`);
        zones.remove(zone.name);
      }
    },
    change(zone, set, removed) {
      try {
        zones.change(zone, set, removed);
      } catch (error) {
        logError(error, `zone ${zone.name} stays at its former serial`);
      }
    },
    remove: (zoneName) => zones.remove(zoneName),
  };
}

type Answer = (message: Uint8Array, asker: Asker) => Reply;

/** Counts what is answered. A bug of ours costs one answer: SERVFAIL, and a line in the log once a minute at most. */
function carefully(zones: ServedZones, { logError }: DnsServerOptions, counters: DnsCounters): Answer {
  let logged = Number.NEGATIVE_INFINITY;
  return (message, asker) => {
    try {
      const reply = answerMessage(zones, message, asker);
      if (reply.kind === 'none') counters.unanswerable += 1;
      else if (reply.kind !== 'transfer') {
        counters.answers[reply.kind] += 1;
        if (reply.truncated) counters.truncated += 1;
      }
      return reply;
    } catch (error) {
      counters.answers.failed += 1;
      const now = performance.now();
      if (now - logged > 60_000) {
        logged = now;
        logError(error, 'a DNS query could not be answered');
      }
      return serverFailure(message);
    }
  };
}

function serverFailure(message: Uint8Array): Reply {
  if (message.length < headerBytes) return { kind: 'none' };
  const octets = Buffer.alloc(headerBytes);
  octets.set(message.subarray(0, 4));
  octets.writeUInt16BE(((octets.readUInt16BE(2) & 0x7900) | flags.response | rcodes.servFail) & 0xffff, 2);
  return { kind: 'failed', octets, truncated: false };
}

interface Pair {
  readonly udp: UdpListener;
  readonly tcp: TcpListener;
}

interface PairOptions extends DnsAddress {
  readonly limit: ResponseLimit;
  readonly counters: DnsCounters;
  readonly answer: Answer;
  readonly options: DnsServerOptions;
  readonly notifier: { transferred(zoneName: string, serial: number, address: string): void };
}

/** How often another free port is tried when somebody has the other half of the one that the system chose. */
const portTries = 10;

async function bindBoth(both: PairOptions, tries = portTries): Promise<Pair> {
  const { host, port, limit, counters, answer, options, notifier } = both;
  const { warn, tcpLimits = usualTcpLimits } = options;
  const tcp = await listenTcp({
    host,
    port,
    counters,
    warn,
    limits: tcpLimits,
    answer: (message, address) => answer(message, { transport: 'tcp', address }),
    transferred: (...done) => notifier.transferred(...done),
  });
  try {
    const udp = await listenUdp({
      host,
      port: tcp.port,
      limit,
      counters,
      warn,
      answer: (message, address, truncate) =>
        answer(message, { transport: 'udp', address: canonicalPeer(address), truncate }),
    });
    return { udp, tcp };
  } catch (error) {
    await tcp.stop();
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE' && port === 0 && tries > 1) {
      return bindBoth(both, tries - 1);
    }
    throw error;
  }
}

function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
