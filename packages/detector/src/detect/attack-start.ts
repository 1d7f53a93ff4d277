/**
 * Owns when an attack that was just found began. Looks at the window alone.
 */
import type { Excess } from '@levee/core/detection/judge.ts';
import { SLOT_MILLISECONDS } from '../bus/port.ts';
import { type Traffic, WINDOW_SLOTS, WindowSums } from './traffic.ts';

const sums = new WindowSums();

/** When its traffic set in, as far as the window tells: within the first slot by how full that one is. */
export function startOf(
  traffic: Traffic,
  slotMs: (slot: number) => number,
  destination: number,
  vector: number,
  { metric, value }: Excess,
): number {
  const key = traffic.keyOf(destination, vector);
  const last = traffic.slot;
  if (key < 0) return slotMs(last);
  const amount = (slot: number) => {
    const { packets, bytes } = traffic.at(key, slot, sums);
    return metric === 'pps' ? packets : bytes * 8;
  };
  const part = value / 2 / WINDOW_SLOTS;
  let first = last;
  while (first > last - WINDOW_SLOTS + 1 && amount(first - 1) >= part) first--;
  const filled = first === last ? 1 : Math.min(1, amount(first) / Math.max(1, amount(first + 1)));
  return slotMs(first) + Math.round((1 - filled) * SLOT_MILLISECONDS);
}
