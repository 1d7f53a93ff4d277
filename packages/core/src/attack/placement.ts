/**
 * Which attack a report is of, and when that attack and its neighbours began and ended. Owns what is made of reports that
 * come late, twice, out of order or not at all; never looks at figures or accounts. What it decides follows from the
 * times that were told, not from the order in which they arrived.
 */

/**
 * `reported`: its source told so. The others are the service's own words and give way to what is told later: nothing was
 * told for long, another attack began, or the addresses went to another account, where a further part of it is recorded.
 */
export const endReasons = ['reported', 'silent', 'another_began', 'holder_changed'] as const;
export type EndReason = (typeof endReasons)[number];

/** Milliseconds since 1970. */
export interface AttackTimes {
  readonly startedMs: number;
  /** False: the first that was heard of it is not its start. */
  readonly startTold: boolean;
  /** The latest moment at which it was told to be going on; undefined: only its end was told. */
  readonly newsMs: number | undefined;
  readonly endedMs: number | undefined;
  /** Undefined: it is going on. */
  readonly endReason: EndReason | undefined;
}

export interface KnownAttack extends AttackTimes {
  readonly uuid: string;
  /** The part of it that belongs to who held the destination before. */
  readonly continues: string | undefined;
  /** Whose it is no longer holds the destination. */
  readonly isFormerHolders: boolean;
}

export interface ReportTimes {
  readonly phase: 'started' | 'changed' | 'ended';
  readonly startedMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly measuredMs: number | undefined;
  /** For what is not told; no other time lies after it. */
  readonly nowMs: number;
  /** The report names its attack: no time tells it from others. */
  readonly isNamed: boolean;
  /** Since when the present holder has the destination. */
  readonly heldSinceMs: number;
}

export interface PlacedAttack extends AttackTimes {
  /** Undefined: it is new. */
  readonly uuid: string | undefined;
  readonly continues: string | undefined;
}

export interface Placement {
  /** What the report is of. */
  readonly target: PlacedAttack;
  /** Others whose times are now others, and at most one that is new: an end that has no start yet. */
  readonly others: readonly PlacedAttack[];
}

/** A start that is told this long after the last news of an attack is another one's. */
export const QUIET_MILLISECONDS = 15 * 60_000;
/** As far as clocks are apart: an end that is told as this much before a start may be its end. */
export const CLOCKS_APART_MILLISECONDS = 60_000;
/** Two ends within it are one that was sent again. */
export const SAME_END_MILLISECONDS = 60_000;

type Draft = { -readonly [Name in keyof PlacedAttack]: PlacedAttack[Name] } & { readonly isFormerHolders: boolean };

/**
 * `known`: the attacks that the report may be of, with those before and after them: all with its name, or else the
 * source's unnamed ones on the destination around the times that it tells.
 */
export function placeReport(known: readonly KnownAttack[], report: ReportTimes): Placement {
  const drafts: Draft[] = known.map((each) => ({ ...each })).sort((a, b) => a.startedMs - b.startedMs);
  const target = new Placer(drafts, report).place();
  settleNeighbours(drafts, target);
  const before = new Map(known.map((each) => [each.uuid, each]));
  const others = drafts.filter((each) => each !== target && !sameTimes(before.get(each.uuid ?? ''), each));
  return { target: placed(target), others: others.map(placed) };
}

class Placer {
  readonly #drafts: Draft[];
  readonly #report: ReportTimes;
  /** The end that is told, or at which the report arrived. */
  readonly #end: number | undefined;
  /** Of which moment the report tells. */
  readonly #at: number;

  constructor(drafts: Draft[], report: ReportTimes) {
    const { phase, startedMs, endedMs, measuredMs, nowMs } = report;
    this.#drafts = drafts;
    this.#report = report;
    this.#end = phase === 'ended' ? (endedMs ?? nowMs) : undefined;
    this.#at = this.#end ?? measuredMs ?? (phase === 'started' ? startedMs : undefined) ?? this.#latest();
  }

  place(): Draft {
    const { isNamed, startedMs } = this.#report;
    const root = isNamed
      ? this.#drafts[0]
      : startedMs !== undefined
        ? this.#findByStart(startedMs)
        : this.#end !== undefined
          ? this.#findByEnd(this.#end)
          : this.#findByNews();
    if (root === undefined) return this.#begin(undefined);
    const part = this.#partAt(root);
    if (this.#isHandedOver(part)) return this.#begin(part);
    this.#tell(part);
    return part;
  }

  /** Now; the clock of another replica may be a little ahead. */
  #latest(): number {
    return Math.max(this.#report.nowMs, this.#drafts.at(-1)?.startedMs ?? 0);
  }

  #around(at: number): readonly [before: Draft | undefined, after: Draft | undefined] {
    const index = this.#drafts.findLastIndex(({ startedMs }) => startedMs <= at);
    return [this.#drafts[index], this.#drafts[index + 1]];
  }

  #findByStart(start: number): Draft | undefined {
    const same = this.#drafts.find((each) => each.startTold && each.startedMs === start);
    if (same !== undefined) return same;
    const [before, after] = this.#around(start);
    if (before !== undefined) {
      const told = toldEnd(before);
      const isQuiet = start > (before.newsMs ?? before.startedMs) + QUIET_MILLISECONDS;
      const isOver = told !== undefined && start > told;
      if (!isQuiet && !isOver) return before;
      if (isOver && !before.startTold && start - told <= CLOCKS_APART_MILLISECONDS) return before;
      if (!isOver && told !== undefined) return this.#splitAt(before, start, told);
    }
    if (after === undefined || (this.#end !== undefined && after.startedMs > this.#end + CLOCKS_APART_MILLISECONDS)) {
      return undefined;
    }
    return !after.startTold || after.startedMs - start <= QUIET_MILLISECONDS ? after : undefined;
  }

  /** The end that was told is of the last attack that began before it. */
  #splitAt(before: Draft, start: number, end: number): Draft {
    before.endedMs = undefined;
    before.endReason = undefined;
    return this.#insert({
      uuid: undefined,
      continues: undefined,
      isFormerHolders: false,
      startedMs: start,
      startTold: true,
      newsMs: start,
      endedMs: end,
      endReason: 'reported',
    });
  }

  #findByEnd(end: number): Draft | undefined {
    const [before, after] = this.#around(end);
    const told = before && toldEnd(before);
    if (before !== undefined && (told === undefined || end <= told + SAME_END_MILLISECONDS)) {
      if (told !== undefined && end < told - SAME_END_MILLISECONDS) this.#insert(endAlone(told));
      return before;
    }
    if (after === undefined || after.startedMs - end > CLOCKS_APART_MILLISECONDS) return undefined;
    const ended = toldEnd(after);
    return ended === undefined || ended === after.startedMs ? after : undefined;
  }

  #findByNews(): Draft | undefined {
    const [before, after] = this.#around(this.#at);
    const told = before && toldEnd(before);
    if (before !== undefined && (told === undefined || this.#at <= told)) return before;
    const isNear = after !== undefined && after.startedMs - this.#at <= CLOCKS_APART_MILLISECONDS;
    return after !== undefined && (!after.startTold || isNear) ? after : undefined;
  }

  #partAt(root: Draft): Draft {
    let part = root;
    for (;;) {
      const next = this.#successor(part);
      if (next === undefined || next.startedMs > this.#at) return part;
      part = next;
    }
  }

  #successor(part: Draft): Draft | undefined {
    return part.uuid === undefined ? undefined : this.#drafts.find(({ continues }) => continues === part.uuid);
  }

  /** Whoever gets an address has no part in what was done to the one before, and that one none in what comes. */
  #isHandedOver(part: Draft): boolean {
    if (!part.isFormerHolders || this.#report.phase === 'ended' || this.#drafts.at(-1) !== part) return false;
    return this.#at > Math.max(part.newsMs ?? part.startedMs, toldEnd(part) ?? 0, this.#report.heldSinceMs);
  }

  #begin(former: Draft | undefined): Draft {
    const { phase, startedMs, measuredMs } = this.#report;
    const start = startedMs ?? Math.min(this.#at, measuredMs ?? this.#at);
    return this.#insert({
      uuid: undefined,
      continues: former?.uuid,
      isFormerHolders: false,
      startedMs: former === undefined ? start : this.#at,
      startTold: former !== undefined || startedMs !== undefined || phase === 'started',
      newsMs: this.#news(),
      endedMs: this.#end === undefined ? undefined : Math.max(this.#end, start),
      endReason: this.#end === undefined ? undefined : 'reported',
    });
  }

  #tell(part: Draft): void {
    const { phase, startedMs, measuredMs } = this.#report;
    const told = toldEnd(part);
    if (part.continues === undefined) {
      if (startedMs !== undefined) {
        const isSooner = part.startTold || startedMs > part.startedMs + CLOCKS_APART_MILLISECONDS;
        part.startedMs = isSooner ? Math.min(part.startedMs, startedMs) : startedMs;
      } else if (!part.startTold) part.startedMs = Math.min(part.startedMs, this.#at, measuredMs ?? this.#at);
      part.startTold ||= startedMs !== undefined || phase === 'started';
    }
    const news = this.#news();
    if (news !== undefined) part.newsMs = Math.max(news, part.newsMs ?? news);
    if (this.#end === undefined && told === undefined) return;
    part.endedMs = Math.max(part.startedMs, Math.min(this.#end ?? told ?? 0, told ?? Number.POSITIVE_INFINITY));
    part.endReason = 'reported';
  }

  #news(): number | undefined {
    const { phase, startedMs, measuredMs } = this.#report;
    if (phase !== 'ended') return Math.max(this.#at, startedMs ?? 0);
    const told = Math.max(startedMs ?? 0, measuredMs ?? 0);
    return told === 0 ? undefined : told;
  }

  #insert(draft: Draft): Draft {
    const index = this.#drafts.findLastIndex(({ startedMs }) => startedMs <= draft.startedMs);
    this.#drafts.splice(index + 1, 0, draft);
    return draft;
  }
}

/** An end whose start is not known: of another attack than the one that it was taken for. */
function endAlone(end: number): Draft {
  return {
    uuid: undefined,
    continues: undefined,
    isFormerHolders: false,
    startedMs: end,
    startTold: false,
    newsMs: undefined,
    endedMs: end,
    endReason: 'reported',
  };
}

function toldEnd({ endReason, endedMs }: AttackTimes): number | undefined {
  return endReason === 'reported' ? endedMs : undefined;
}

/** An attack whose end nobody told is over when another one follows; else it goes on, unless it fell silent since. */
function settleNeighbours(drafts: readonly Draft[], target: Draft): void {
  const at = drafts.indexOf(target);
  for (const index of [at - 1, at]) {
    const attack = drafts[index];
    if (attack === undefined || attack.endReason === 'reported') continue;
    const follower = drafts[index + 1];
    const news = Math.max(attack.startedMs, attack.newsMs ?? attack.startedMs);
    if (follower !== undefined) {
      attack.endedMs = Math.max(attack.startedMs, Math.min(news, follower.startedMs));
      const isPart = follower.continues !== undefined && follower.continues === attack.uuid;
      attack.endReason = isPart ? 'holder_changed' : 'another_began';
    } else if (attack.endedMs !== undefined && news > attack.endedMs) {
      attack.endedMs = undefined;
      attack.endReason = undefined;
    }
  }
}

function sameTimes(a: AttackTimes | undefined, b: AttackTimes): boolean {
  return (
    a !== undefined &&
    a.startedMs === b.startedMs &&
    a.startTold === b.startTold &&
    a.newsMs === b.newsMs &&
    a.endedMs === b.endedMs &&
    a.endReason === b.endReason
  );
}

function placed({ uuid, continues, startedMs, startTold, newsMs, endedMs, endReason }: Draft): PlacedAttack {
  return { uuid, continues, startedMs, startTold, newsMs, endedMs, endReason };
}
