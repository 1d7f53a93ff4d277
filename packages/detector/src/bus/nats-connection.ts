/**
 * One connection with NATS, which comes back by itself: what is published while it is away, or while it takes no more, is
 * counted and not kept, since a slot that comes late is worth nothing. Knows subjects and octets, no message.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createBackoff } from '@levee/follow/backoff.ts';
import { watchOutage } from '@levee/follow/outage.ts';
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  type Subscription,
  type TlsOptions,
} from '@nats-io/transport-node';
import type { Logger } from 'pino';
import { FrameReader, FrameWriter } from './frames.ts';

export interface NatsSettings {
  /** `nats://host:port` or `tls://host:port`, of one cluster. */
  readonly servers: readonly string[];
  /** Subjects begin with it: two installations may share a NATS. */
  readonly name: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
  /** A `.creds` file, or one that holds an nkey's seed alone. */
  readonly credentialsFile?: string | undefined;
  /** In PEM: who may have signed the server's certificate, and our own with its key. */
  readonly caFile?: string | undefined;
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

export interface BusCounts {
  /** Messages that were not sent. */
  unsent: number;
  /** What came and was no message, by why. */
  readonly bad: Record<string, number>;
  sentOctets: number;
  sentMessages: number;
}

export interface BusConnection {
  readonly connected: boolean;
  /** Why it is not, by the last attempt; absent: it is, or nothing was tried to its end. */
  readonly problem: string | undefined;
  readonly counts: BusCounts;
  /** False: it was not sent, and is counted. */
  publish(subject: string, message: Uint8Array, reply?: string): boolean;
  /** Stays over all connections; what is returned ends it. */
  subscribe(subject: string, heard: (message: Uint8Array, reply: string | undefined) => void): () => void;
  /** Whenever it is another, from now on. */
  onConnection(changed: (connected: boolean) => void): void;
  /** What was published before is sent, where that takes no longer than a second. */
  close(): Promise<void>;
}

/** Published and not known to have arrived. */
const mostUnderWay = 32 << 20;
const longestPauseMilliseconds = 2_000;
const connectMilliseconds = 2_000;
/** A way that is dead without a word is known after three of them. */
const pingMilliseconds = 1_000;
const closeMilliseconds = 1_000;

/** Throws an Error with a sentence for the operator when a file cannot be read. NATS need not be there. */
export function openBusConnection(settings: NatsSettings, logger: Logger): BusConnection {
  const options = connectionOptions(settings);
  const counts: BusCounts = { unsent: 0, bad: {}, sentOctets: 0, sentMessages: 0 };
  const writer = new FrameWriter(randomBytes(8));
  const reader = new FrameReader();
  const backoff = createBackoff(longestPauseMilliseconds);
  const outage = watchOutage(logger, 'not connected with NATS');
  const listeners = new Set<(connected: boolean) => void>();
  const wanted = new Map<
    object,
    { readonly subject: string; readonly heard: (octets: Uint8Array, reply?: string) => void }
  >();
  const held = new Map<object, Subscription>();
  let connection: NatsConnection | undefined;
  let connected = false;
  let problem: string | undefined;
  let stopped = false;
  let underWay = 0;
  let isFlushing = false;
  let wake: () => void = () => undefined;

  const bad = (reason: string): void => {
    counts.bad[reason] = (counts.bad[reason] ?? 0) + 1;
  };
  const failed = (reason: string): void => {
    problem = reason;
    outage.failed({ reason });
  };
  const settle = (now: boolean): void => {
    if (now === connected) return;
    connected = now;
    underWay = 0;
    isFlushing = false;
    if (now) {
      problem = undefined;
      outage.over();
      backoff.reset();
      logger.info({ server: connection?.getServer() }, 'connected with NATS');
    }
    for (const each of listeners) each(now);
  };
  const take = (nats: NatsConnection, key: object): void => {
    const each = wanted.get(key);
    if (each === undefined) return;
    const subscription = nats.subscribe(each.subject, {
      callback(error, { data, reply }) {
        if (error !== null) return bad('permission');
        const message = reader.take(data, Date.now());
        if (message === false) bad('frame');
        else if (message !== undefined) each.heard(message, reply);
      },
    });
    held.set(key, subscription);
  };
  const watch = async (nats: NatsConnection): Promise<void> => {
    for await (const status of nats.status()) {
      if (status.type === 'disconnect') {
        settle(false);
        failed(`the connection with ${status.server} ended`);
      } else if (status.type === 'reconnecting') failed('nobody answers');
      else if (status.type === 'reconnect') settle(true);
      else if (status.type === 'error') logger.warn({ reason: status.error.message }, 'NATS refuses something');
    }
  };
  const run = async (): Promise<void> => {
    while (!stopped) {
      try {
        const nats = await connect(options);
        if (stopped) {
          await nats.close();
          return;
        }
        connection = nats;
        held.clear();
        for (const key of wanted.keys()) take(nats, key);
        settle(true);
        void watch(nats);
        const end = await nats.closed();
        settle(false);
        connection = undefined;
        if (!stopped) failed(end instanceof Error ? end.message : 'it was closed');
      } catch (error) {
        failed((error as Error).message);
      }
      if (!stopped)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, backoff.next());
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
    }
  };
  const flush = (nats: NatsConnection): void => {
    if (isFlushing) return;
    isFlushing = true;
    const upTo = underWay;
    nats.flush().then(
      () => {
        isFlushing = false;
        underWay = Math.max(0, underWay - upTo);
        if (underWay > 0 && nats === connection && connected) flush(nats);
      },
      () => {
        isFlushing = false;
      },
    );
  };
  const running = run();
  return {
    get connected() {
      return connected;
    },
    get problem() {
      return problem;
    },
    counts,
    publish(subject, message, reply) {
      const nats = connection;
      const most = nats?.info?.max_payload ?? 1 << 20;
      const frames = connected && underWay + message.length <= mostUnderWay ? writer.cut(message, most) : undefined;
      if (nats === undefined || frames === undefined) {
        counts.unsent++;
        return false;
      }
      try {
        for (const frame of frames) {
          nats.publish(subject, frame, reply === undefined ? {} : { reply });
          underWay += frame.length;
          counts.sentOctets += frame.length;
        }
      } catch {
        // It was closed a moment ago.
        counts.unsent++;
        return false;
      }
      counts.sentMessages++;
      flush(nats);
      return true;
    },
    subscribe(subject, heard) {
      const key = {};
      wanted.set(key, { subject, heard });
      if (connection !== undefined && !connection.isClosed()) take(connection, key);
      return () => {
        wanted.delete(key);
        held.get(key)?.unsubscribe();
        held.delete(key);
      };
    },
    onConnection: (changed) => void listeners.add(changed),
    async close() {
      stopped = true;
      wake();
      const nats = connection;
      listeners.clear();
      if (nats !== undefined) {
        if (connected) {
          const late = new Promise((resolve) => setTimeout(resolve, closeMilliseconds).unref());
          await Promise.race([nats.flush().catch(() => undefined), late]);
        }
        await nats.close();
      }
      await running;
    },
  };
}

function connectionOptions(settings: NatsSettings): ConnectionOptions {
  const { servers, user, password, token, credentialsFile } = settings;
  const { caFile, certificateFile, keyFile } = settings;
  const isSecured =
    caFile !== undefined || certificateFile !== undefined || servers.some((url) => url.startsWith('tls:'));
  const tls: TlsOptions = {
    ...(caFile !== undefined && { ca: read(caFile, 'certificates').toString() }),
    ...(certificateFile !== undefined && { cert: read(certificateFile, 'certificate').toString() }),
    ...(keyFile !== undefined && { key: read(keyFile, 'key').toString() }),
  };
  return {
    servers: [...servers],
    name: `levee ${settings.name}`,
    // The first attempt is repeated here, those after it by the client.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    reconnectJitterTLS: 250,
    ignoreAuthErrorAbort: true,
    timeout: connectMilliseconds,
    pingInterval: pingMilliseconds,
    maxPingOut: 2,
    noEcho: true,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    ...(token !== undefined && { token }),
    ...(credentialsFile !== undefined && { authenticator: authenticatorOf(read(credentialsFile, 'credentials')) }),
    ...(isSecured && { tls }),
  };
}

function authenticatorOf(octets: Buffer): Authenticator {
  const text = octets.toString().trim();
  return /^S[A-Z0-9]{57}$/.test(text) ? nkeyAuthenticator(Buffer.from(text)) : credsAuthenticator(octets);
}

function read(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`the ${what} for NATS cannot be read from ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
}
