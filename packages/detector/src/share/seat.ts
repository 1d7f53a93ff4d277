/**
 * A detector among others: shows life, hears who else there is, and holds the share that follows from it. Owns when it begins and when
 * it has to begin anew: whoever was cut off, or stood still, for as long as others take to notice, has no share until it has heard them.
 */
import type { NatsDetectorBus } from '../bus/nats.ts';
import type { BusConnection } from '../bus/nats-connection.ts';
import { GONE_MILLISECONDS, type Member, Members, SIGN_MILLISECONDS } from './members.ts';

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
const tickMilliseconds = 100;
/** What is lost is let go at once, what is gained taken so much later: by then whoever had it has let go, and told what it knew. */
const handoverMilliseconds = 300;
/** A link that comes back sooner moves nothing. */
const unlinkedMilliseconds = 5_000;

export function takeSeat(options: SeatOptions): Seat {
  const { bus, connection, detector, now } = options;
  const members = new Members(detector);
  let share: ReadonlySet<number> = new Set();
  let due: ReadonlySet<number> = new Set();
  let dueSince = now();
  let settledAt = now() + settleMilliseconds;
  let tickedAt = now();
  let toldAt = Number.NEGATIVE_INFINITY;
  let linkedAt = Number.NEGATIVE_INFINITY;
  let cutAt = now();
  /** What the others were told of this one last. */
  let told: Member = { ready: false, linked: false };

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
  /** What is to be ours by what is known now. */
  const review = (next: ReadonlySet<number>): void => {
    if (!isSame(next, due)) {
      due = next;
      dueSince = now();
      hold(new Set([...share].filter((partition) => next.has(partition))));
    }
    if (now() - dueSince >= handoverMilliseconds) hold(due);
  };
  const tick = (): void => {
    const nowMs = now();
    const stoodStill = nowMs - tickedAt > GONE_MILLISECONDS;
    tickedAt = nowMs;
    if (!connection.connected) {
      if (nowMs - cutAt > GONE_MILLISECONDS) review(new Set());
      return;
    }
    if (stoodStill) beginAnew();
    if (options.isLinked()) linkedAt = nowMs;
    const own = {
      ready: nowMs >= settledAt && options.isInformed(),
      linked: nowMs - linkedAt <= unlinkedMilliseconds,
    };
    const isNews = own.ready !== told.ready || own.linked !== told.linked;
    if (isNews || nowMs - toldAt >= SIGN_MILLISECONDS - tickMilliseconds / 2) {
      toldAt = nowMs;
      told = own;
      bus.tell({ type: 'member', detector, ...own });
    }
    review(members.share(own, nowMs));
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
        if (members.heard(message.detector, message, now()) && connection.connected) review(members.share(told, now()));
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

function isSame(one: ReadonlySet<number>, other: ReadonlySet<number>): boolean {
  return one.size === other.size && [...one].every((partition) => other.has(partition));
}
