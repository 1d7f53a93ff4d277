/**
 * What is still to be told of attacks, in the order of their beginnings, and bounded however long the control plane is away.
 * Owns what becomes of two words about one attack: its start and its end always go out, what changed between them is one.
 * Sends nothing.
 */
import type { DetectedAttack } from '@levee/contract/detector.ts';

export interface WaitingAttacks {
  readonly size: number;
  add(attack: DetectedAttack): void;
  /** What goes into the next report; at most `most` attacks and about `bytes` octets, and at least one if any waits. */
  take(most: number, bytes: number): readonly DetectedAttack[];
  /** What was taken has been answered. */
  settled(): void;
  /** What was taken has not been answered: it comes again with the next `take`. */
  returned(): void;
  /** What was taken is not understood: it comes once more, without what it looks like. False: it was so already, and is given up. */
  bared(): boolean;
}

export interface WaitingLimits {
  /** Words that wait with all that proves them; beyond it the oldest ones go without samples and timeline. */
  readonly whole: number;
  /** Words that wait at all: beyond it what changed goes, then attacks that have ended. */
  readonly most: number;
}

export const usualLimits: WaitingLimits = { whole: 500, most: 20_000 };
/** As many as one report may have. */
const MOST_SAMPLES = 100;
const MOST_TIMELINE = 3_600;

/** `lost` is told of attacks that had to be given up: the oldest that have ended. */
export function createWaitingAttacks(lost: (attack: DetectedAttack) => void, limits = usualLimits): WaitingAttacks {
  /** By id, in order; at most a start, a change and an end. */
  let waiting: DetectedAttack[] = [];
  let taken: readonly DetectedAttack[] = [];

  const shrink = (): void => {
    for (let i = 0; i < waiting.length - limits.whole; i++) {
      const each = waiting[i] as DetectedAttack;
      if (each.timeline.length > 0 || each.packet_samples.length > 0) {
        waiting[i] = { ...each, timeline: [], packet_samples: [] };
      }
    }
    if (waiting.length <= limits.most) return;
    const changed = waiting.findIndex(({ phase }) => phase === 'changed');
    if (changed >= 0) {
      waiting.splice(changed, 1);
      return;
    }
    // As many as go on at once are few: detection is bounded.
    const ended = waiting.find(({ phase }) => phase === 'ended');
    if (ended === undefined) return;
    waiting = waiting.filter(({ id }) => id !== ended.id);
    lost(ended);
  };

  return {
    get size() {
      return waiting.length + taken.length;
    },
    add(attack) {
      const last = waiting.findLastIndex(({ id }) => id === attack.id);
      const former = waiting[last];
      // Only words between start and end may be one: what is told in a start is what began it.
      if (former?.phase === 'changed' && attack.phase !== 'started') {
        waiting[last] = mergedWith(former, attack);
      } else if (former?.phase === attack.phase) {
        waiting[last] = mergedWith(former, attack);
      } else {
        waiting.push(attack);
      }
      shrink();
    },
    take(most, bytes) {
      if (taken.length > 0) throw new Error('what was taken before is neither settled nor returned');
      let left = bytes;
      let count = 0;
      while (count < Math.min(most, waiting.length)) {
        left -= JSON.stringify(waiting[count]).length;
        if (left < 0 && count > 0) break;
        count += 1;
      }
      taken = waiting.slice(0, count);
      waiting = waiting.slice(count);
      return taken;
    },
    settled() {
      taken = [];
    },
    returned() {
      waiting = [...taken, ...waiting];
      taken = [];
    },
    bared() {
      const rich = taken.filter((each) => !isBare(each));
      waiting = [...rich.map(bareOf), ...waiting];
      taken = [];
      return rich.length > 0;
    },
  };
}

function isBare({ profile, timeline, packet_samples, entries }: DetectedAttack): boolean {
  return profile.length + timeline.length + packet_samples.length + entries.length === 0;
}

function bareOf(attack: DetectedAttack): DetectedAttack {
  return { ...attack, profile: [], timeline: [], packet_samples: [], entries: [] };
}

function mergedWith(former: DetectedAttack, later: DetectedAttack): DetectedAttack {
  const moments = new Map(
    [...former.timeline, ...later.timeline].map((entry) => [`${entry.seconds} ${entry.at_ms}`, entry]),
  );
  const peaks = new Map(former.profile.map((each) => [each.vector, each]));
  return {
    ...later,
    // The peak of what was measured is what the attack is known by.
    measured:
      later.measured.pps + later.measured.bps / 8 >= former.measured.pps + former.measured.bps / 8
        ? later.measured
        : former.measured,
    profile: later.profile.map((each) => {
      const before = peaks.get(each.vector);
      if (before === undefined) return each;
      return {
        ...each,
        peak_pps: Math.max(each.peak_pps, before.peak_pps),
        peak_bps: Math.max(each.peak_bps, before.peak_bps),
      };
    }),
    timeline: [...moments.values()].slice(-MOST_TIMELINE),
    packet_samples: [...former.packet_samples, ...later.packet_samples].slice(-MOST_SAMPLES),
  };
}
