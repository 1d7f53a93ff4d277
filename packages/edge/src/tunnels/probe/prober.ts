/**
 * Asks the customer's end of each tunnel for an echo, every ten seconds, and adds up what comes back. Owns pace and sums.
 * One timer and a socket a family for all tunnels; nothing while there are none.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { AgentProbe } from '@levee/contract/agent.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import type { WantedDevice } from '../wanted-device.ts';
import type { EchoSocket } from './echo-socket.ts';

export interface Prober {
  /** Those that are in force. What is known of the others is forgotten. */
  set(devices: readonly WantedDevice[]): void;
  /** What was found out since the last call; a request counts once it is answered or given up. */
  take(): AgentProbe[];
  /** Why nothing is asked, where that is so. */
  status(): Record<string, unknown>;
  stop(): void;
}

export interface ProberOptions {
  openSocket(family: Family): EchoSocket;
  /** Between two requests to one tunnel. */
  readonly intervalMilliseconds: number;
  /** After which an answer is not waited for. */
  readonly patienceMilliseconds: number;
  /** Between two looks for answers and for whose turn it is. The kernel notes when an answer came. */
  readonly tickMilliseconds: number;
  /** Milliseconds, of a clock that only rises. */
  now(): number;
}

export const usualPace = { intervalMilliseconds: 10_000, patienceMilliseconds: 3_000, tickMilliseconds: 100 };

interface Target {
  readonly uuid: string;
  readonly family: Family;
  readonly address: string;
  due: number;
  sent: number;
  received: number;
  sum: number;
  least: number;
  most: number;
  lastAnswer: number | undefined;
}

interface Request {
  readonly target: Target;
  readonly sentAt: number;
  readonly giveUpAt: number;
}

/** What tells our answers from another program's: a raw socket sees both. */
const secretBytes = 16;

export function createProber(options: ProberOptions): Prober {
  const { intervalMilliseconds, patienceMilliseconds, now } = options;
  const secret = randomBytes(secretBytes);
  const sockets = new Map<Family, EchoSocket | undefined>();
  const targets = new Map<string, Target>();
  /** By sequence number; in the order of sending. */
  const open = new Map<number, Request>();
  let sequence = 0;
  let obstacle: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  const socketOf = (family: Family): EchoSocket | undefined => {
    if (!sockets.has(family)) {
      try {
        sockets.set(family, options.openSocket(family));
      } catch (error) {
        sockets.set(family, undefined);
        obstacle = (error as Error).message;
      }
    }
    return sockets.get(family);
  };
  const ask = (target: Target, at: number): void => {
    const socket = socketOf(target.family);
    if (socket === undefined) return;
    sequence = (sequence + 1) & 0xffff;
    const sentAt = socket.send(target.address, { sequence, payload: secret });
    if (sentAt === undefined) target.sent += 1;
    else open.set(sequence, { target, sentAt, giveUpAt: at + patienceMilliseconds });
  };
  const hear = (): void => {
    for (const socket of sockets.values()) {
      for (const answer of socket?.receive() ?? []) {
        const request = open.get(answer.sequence);
        if (request?.target.address !== answer.from || !answer.payload.equals(secret)) continue;
        open.delete(answer.sequence);
        const { target } = request;
        const taken = Math.max(0, answer.at - request.sentAt);
        target.least = target.received === 0 ? taken : Math.min(target.least, taken);
        target.most = target.received === 0 ? taken : Math.max(target.most, taken);
        target.sum += taken;
        target.sent += 1;
        target.received += 1;
        target.lastAnswer = answer.at;
      }
    }
  };
  const tick = (): void => {
    const at = now();
    hear();
    for (const [number, { target, giveUpAt }] of open) {
      if (giveUpAt > at) break;
      open.delete(number);
      target.sent += 1;
    }
    for (const target of targets.values()) {
      if (target.due > at) continue;
      ask(target, at);
      // In its place again, also when whole intervals were missed.
      target.due += intervalMilliseconds * (Math.floor((at - target.due) / intervalMilliseconds) + 1);
    }
  };
  const adjustTimer = (): void => {
    if (targets.size > 0) timer ??= setInterval(tick, options.tickMilliseconds).unref();
    else {
      clearInterval(timer);
      timer = undefined;
    }
  };

  return {
    set(devices) {
      const kept = new Set<string>();
      for (const { uuid, ips, customer4, customer6 } of devices) {
        kept.add(uuid);
        // Of the family that is routed: a customer's end may have no other.
        const family = ips.some((prefix) => prefix.family === 4) ? 4 : 6;
        const address = family === 4 ? customer4 : customer6;
        if (targets.get(uuid)?.address === address) continue;
        const due = now() + placeOf(uuid) * intervalMilliseconds;
        const sums = { sent: 0, received: 0, sum: 0, least: 0, most: 0, lastAnswer: undefined };
        targets.set(uuid, { uuid, family, address, due, ...sums });
      }
      for (const uuid of targets.keys()) if (!kept.has(uuid)) targets.delete(uuid);
      adjustTimer();
    },
    take() {
      const found: AgentProbe[] = [];
      for (const target of targets.values()) {
        if (target.sent === 0) continue;
        found.push(describe(target));
        Object.assign(target, { sent: 0, received: 0, sum: 0 });
      }
      return found;
    },
    status: () => (obstacle === undefined ? {} : { probes: `none: ${obstacle}` }),
    stop() {
      targets.clear();
      adjustTimer();
      for (const socket of sockets.values()) socket?.close();
      sockets.clear();
    },
  };
}

/** Where in the interval a tunnel's turn is, from 0 to 1: the same after a restart, so that there is no burst. */
function placeOf(uuid: string): number {
  return createHash('sha256').update(uuid).digest().readUInt32BE(0) / 2 ** 32;
}

function describe({ uuid, sent, received, sum, least, most, lastAnswer }: Target): AgentProbe {
  const thousandth = (milliseconds: number) => Math.round(milliseconds * 1000) / 1000;
  return {
    uuid,
    sent,
    received,
    ...(received > 0 && {
      rtt_ms: { min: thousandth(least), avg: thousandth(sum / received), max: thousandth(most) },
    }),
    ...(lastAnswer !== undefined && { last_answer_at: new Date(lastAnswer).toISOString() }),
  };
}
