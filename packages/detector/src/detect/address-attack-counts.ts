/**
 * Owns the count of attacks on single addresses by their subnets and vectors, by which a further one is on the subnet. Made for one
 * slot; begins nothing.
 */
import { MOST_ADDRESS_ATTACKS, MOST_ADDRESS_ATTACKS_HELD } from '@levee/core/detection/carpet.ts';
import type { Attack } from './attack.ts';
import type { Traffic } from './traffic.ts';

const none = -1;

interface Count {
  /** Above half of what they exceeded. */
  present: number;
  /** And those that wait for their end. */
  held: number;
}

export class AddressAttackCounts {
  /** By subnet and vector. */
  readonly #counts = new Map<string, Count>();

  constructor(traffic: Traffic, attacks: Iterable<Attack>) {
    for (const attack of attacks) {
      const aggregate = traffic.aggregates[attack.destination] as number;
      if (aggregate === none || aggregate === attack.destination) continue;
      for (const vector of attack.vectors.keys()) this.#add(aggregate, vector, attack.isAboveHalf(vector));
    }
  }

  /** Whether an address of the subnet may still be attacked by the vector on its own. */
  hasRoom(aggregate: number, vector: number): boolean {
    const count = this.#counts.get(`${aggregate} ${vector}`);
    return count === undefined || (count.present < MOST_ADDRESS_ATTACKS && count.held < MOST_ADDRESS_ATTACKS_HELD);
  }

  /** One that begins in this slot. */
  add(aggregate: number, vector: number): void {
    if (aggregate !== none) this.#add(aggregate, vector, true);
  }

  #add(aggregate: number, vector: number, isPresent: boolean): void {
    const key = `${aggregate} ${vector}`;
    const count = this.#counts.get(key) ?? { present: 0, held: 0 };
    count.held++;
    if (isPresent) count.present++;
    this.#counts.set(key, count);
  }
}
