/**
 * What detection needs and gives: the types between it and whoever starts it (`main.ts`, simulations, tests). Owns no
 * behaviour.
 */
import type { BaselineEntry, DetectedAttack, DetectorBaselines, DetectorSettings } from '@levee/contract/detector.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import type { CollectedSamples, CollectorStatus, DetectorBus } from '../bus/port.ts';

export interface DetectionClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that never steps (CLOCK_MONOTONIC); absent: neither does `now`. */
  steady?(): number;
  /** Runs it once, after so many milliseconds; what is returned takes that back. */
  after(milliseconds: number, run: () => void): () => void;
}

/** Of pino's logger, what is used of it. */
export interface DetectionLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** For the control plane. It is handed over once; whoever takes it sends it until it is answered. */
export interface DetectionNews {
  readonly attacks: readonly DetectedAttack[];
  /** At most 5 000, every five minutes; those of one key and hour stand instead of earlier ones. */
  readonly baselines: readonly BaselineEntry[];
}

export interface DetectionOptions {
  readonly bus: DetectorBus;
  /** Unique among the detectors that run. */
  readonly name: string;
  readonly clock: DetectionClock;
  /** A new uuid. */
  readonly newId: () => string;
  readonly report: (news: DetectionNews) => void;
  readonly log: DetectionLog;
  /** What collectors say that is not for detection: their status, and samples that somebody else asked for. */
  readonly passOn?: (message: CollectorStatus | CollectedSamples) => void;
  /** Whether a collector is away: what it alone saw is not known to be over. Absent: none is. */
  readonly isCollectorAway?: () => boolean;
  /** Whether the destination is in this detector's share; absent: all are. */
  readonly isOurs?: (destination: Prefix) => boolean;
}

export interface DetectionStatus {
  readonly trackedDestinations: number;
  readonly attacks: number;
  /** Rows of slots that were not counted because of too many destinations at once, since the start. */
  readonly untracked: number;
  /** Rows that came after their moment had been judged and left the window, since the start. */
  readonly late: number;
}

/** Before the first settings it counts and judges nothing. It does not hand settings on to collectors. */
export interface Detection {
  /** The newest, whole. Takes over from `ongoing` what is ours and not known yet. */
  settings(settings: DetectorSettings): void;
  /** What was learnt before, in any number of parts: before the first settings, and again when there is a share that was not ours. */
  baselines(baselines: DetectorBaselines): void;
  /** `isOurs` says something else from now on: what is no longer ours is let go without a word, what is ours now taken over. */
  shareChanged(): void;
  status(): DetectionStatus;
  /** Ends no attack: whoever detects next takes them over. */
  stop(): void;
}

export type StartDetection = (options: DetectionOptions) => Detection;
