/**
 * What is still to be told beside attacks: what exporters do, and what is usual. Owns that a piece which the control plane does not
 * understand costs no other: those that went with it come again in smaller parts, until it is alone. Bounded. Sends nothing.
 */
import type { BaselineEntry, DetectorReport, ExporterStatus } from '@levee/contract/detector.ts';

type Figures = Pick<DetectorReport, 'exporters' | 'baselines'>;

export interface WaitingFigures {
  readonly size: number;
  /** Instead of what was told before. */
  exporters(present: readonly ExporterStatus[]): void;
  /** An entry of the same destination, vector and hour stands instead of an earlier one. */
  baselines(entries: readonly BaselineEntry[]): void;
  /** What goes into the next report; it waits until it is settled. */
  take(): Figures;
  settled(): void;
  /** What was taken is not understood. True: it was a single piece, and is given up. */
  refused(): boolean;
}

const MOST_BASELINES = 5_000;
/** Those that wait; they come again with every reading. */
const BASELINES_KEPT = 100_000;

export function createWaitingFigures(): WaitingFigures {
  const gathered = new Map<string, BaselineEntry>();
  let exporters: readonly ExporterStatus[] | undefined;
  let taken: { readonly exporters: typeof exporters; readonly baselines: readonly [string, BaselineEntry][] } = {
    exporters: undefined,
    baselines: [],
  };
  /** How many baselines go at once, and whether exporters go by themselves. */
  let most = MOST_BASELINES;
  let isApart = false;

  const sizeNow = () => gathered.size + (exporters === undefined ? 0 : 1);
  /** What came after it was taken stands. */
  const settle = (): void => {
    for (const [name, entry] of taken.baselines) if (gathered.get(name) === entry) gathered.delete(name);
    if (exporters === taken.exporters) exporters = undefined;
    taken = { exporters: undefined, baselines: [] };
  };

  return {
    get size() {
      return sizeNow();
    },
    exporters(present) {
      exporters = present;
    },
    baselines(entries) {
      for (const entry of entries) {
        const key = `${entry.dst} ${entry.vector} ${entry.hour}`;
        if (gathered.has(key) || gathered.size < BASELINES_KEPT) gathered.set(key, entry);
      }
    },
    take() {
      const baselines = isApart && exporters !== undefined ? [] : [...gathered].slice(0, most);
      taken = { exporters, baselines };
      return {
        ...(exporters !== undefined && { exporters: [...exporters] }),
        ...(baselines.length > 0 && { baselines: baselines.map(([, entry]) => entry) }),
      };
    },
    settled() {
      settle();
      if (sizeNow() > 0) return;
      most = MOST_BASELINES;
      isApart = false;
    },
    refused() {
      const { length } = taken.baselines;
      const isSingle = taken.exporters === undefined ? length <= 1 : length === 0;
      if (isSingle) {
        settle();
        most = MOST_BASELINES;
      } else if (taken.exporters !== undefined) isApart = true;
      else most = Math.ceil(length / 2);
      return isSingle;
    },
  };
}
