/**
 * Owns what is said over NATS besides what collector and detector say to each other anywhere (`port.ts`): how those that run
 * find each other, and what detectors tell each other of attacks. Types only.
 */
import type { OngoingAttack } from '@levee/contract/detector.ts';
import type { CollectedSamples, CollectorStatus, ToCollector } from './port.ts';
import type { SlotEnd, SlotPart } from './slot-codec.ts';

/** Whoever begins asks: detectors answer with settings, hot destinations and attacks. */
export interface Ask {
  readonly type: 'ask';
}

/** A detector's sign of life. */
export interface MemberSign {
  readonly type: 'member';
  readonly detector: string;
  /** It knows its settings and what the others know: it may have a share. */
  readonly ready: boolean;
  /** It has a control plane that hears it. */
  readonly linked: boolean;
}

/** What a detector knows of its attacks: whoever takes its share over goes on with them. */
export interface AttackNews {
  readonly type: 'attacks';
  readonly detector: string;
  readonly ongoing: readonly OngoingAttack[];
  /** Names of those that ended lately. */
  readonly ended: readonly string[];
}

/** It ends because it was told to: a collector that nobody has to wait for, or a detector whose share is free. */
export interface Farewell {
  readonly type: 'farewell';
  readonly name: string;
}

export type BusMessage =
  | ({ readonly type: 'slot_part' } & SlotPart)
  | ({ readonly type: 'slot_end' } & SlotEnd)
  | CollectorStatus
  | CollectedSamples
  | ToCollector
  | Ask
  | MemberSign
  | AttackNews
  | Farewell;
