/**
 * A detector among others: shows life, hears who else there is, and holds the share that follows from it. Owns when it begins and when
 * it has to begin anew: whoever was cut off, or stood still, for as long as others take to notice, has no share until it has heard them.
 */
import type { NatsDetectorBus } from '../bus/nats.ts';
import type { BusConnection } from '../bus/nats-connection.ts';
import { GONE_MILLISECONDS, Members, SIGN_MILLISECONDS } from './members.ts';

export interface SeatOptions {
  readonly bus: NatsDetectorBus;
  readonly connection: Pick<BusConnection, 'connected' | 'onConnection'>;
  readonly detector: string;
  /** It has settings. */
  readonly isInformed: () => boolean;
  /** The control plane hears it. */
  readonly isLinked: () => boolean;
  /** The share is another: what was gained is to be taken over, what was lost let go. */
  readonly changed: (share: ReadonlySet<number>, gained: boolean) => void;
  /** Somebody begins: what is known here is to be told. */
  readonly asked: () => void;
  readonly now: () => number;
}

export interface Seat {
  readonly share: ReadonlySet<number>;
  /** Others that show life. */
  readonly others: number;
  stop(): void;
}

/** Others have shown life by then, and told what they know. */
const settleMilliseconds = 1_500;
const tickMilliseconds = 250;
/** A link that comes back sooner moves nothing. */
const unlinkedMilliseconds = 5_000;

export function takeSeat(options: SeatOptions): Seat {
  const { bus, connection, detector, now } = options;
  const members = new Members(detector);
  let share: ReadonlySet<number> = new Set();
  let settledAt = now() + settleMilliseconds;
  let tickedAt = now();
  let toldAt = Number.NEGATIVE_INFINITY;
  let linkedAt = Number.NEGATIVE_INFINITY;
  let cutAt = now();

  const beginAnew = (): void => {
    settledAt = now() + settleMilliseconds;
    members.forgive(now());
    bus.tell({ type: 'ask' });
  };
  const hold = (next: ReadonlySet<number>): void => {
    const gained = [...next].some((partition) => !share.has(partition));
    if (!gained && next.size === share.size) return;
    share = next;
    // Attacks of the share are known before its first slot.
    options.changed(share, gained);
    bus.listen(share);
  };
  const tick = (): void => {
    const nowMs = now();
    const stoodStill = nowMs - tickedAt > GONE_MILLISECONDS;
    tickedAt = nowMs;
    if (!connection.connected) {
      if (nowMs - cutAt > GONE_MILLISECONDS) hold(new Set());
      return;
    }
    if (stoodStill) beginAnew();
    if (options.isLinked()) linkedAt = nowMs;
    const own = {
      ready: nowMs >= settledAt && options.isInformed(),
      linked: nowMs - linkedAt <= unlinkedMilliseconds,
    };
    if (stoodStill || nowMs - toldAt >= SIGN_MILLISECONDS - tickMilliseconds / 2) {
      toldAt = nowMs;
      bus.tell({ type: 'member', detector, ...own });
    }
    hold(members.share(own, nowMs));
  };
  connection.onConnection((connected) => {
    if (!connected) {
      cutAt = now();
      return;
    }
    members.forgive(now());
    if (now() - cutAt > GONE_MILLISECONDS || share.size === 0) beginAnew();
    tick();
  });
  bus.onNews((message) => {
    switch (message.type) {
      case 'member':
        members.heard(message.detector, message, now());
        return;
      case 'farewell':
        members.left(message.name);
        return;
      case 'ask':
        options.asked();
    }
  });
  if (connection.connected) beginAnew();
  const timer = setInterval(tick, tickMilliseconds);
  return {
    get share() {
      return share;
    },
    get others() {
      return members.size;
    },
    stop() {
      clearInterval(timer);
      bus.tell({ type: 'farewell', name: detector });
    },
  };
}
