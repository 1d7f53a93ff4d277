/**
 * Notices that somebody else changed our table, and has it put up anew. Owns the pace; costs one system call a look while
 * nobody did anything, because the kernel tells each change and its maker's transaction.
 */
import type { NftKernel } from '../drivers/nft/port.ts';

export interface DriftWatch {
  /** How often the table was found changed by others. */
  readonly count: number;
  look(): void;
  stop(): void;
}

/** When notices were dropped nobody knows what happened: then not more than one full load in this time. */
const lostPauseMilliseconds = 60_000;

export function watchDrift(
  kernel: NftKernel,
  periodMilliseconds: number,
  drifted: (reason: string) => void,
  now: () => number = () => performance.now(),
): DriftWatch {
  let count = 0;
  let lostAt = Number.NEGATIVE_INFINITY;
  let missed = false;
  const look = (): void => {
    const seen = kernel.foreignChange();
    if (seen === 'lost') missed = true;
    if (seen === 'changed') {
      count += 1;
      missed = false;
      drifted('another program changed the table');
    } else if (missed && now() - lostAt > lostPauseMilliseconds) {
      lostAt = now();
      missed = false;
      drifted('notices of changes by others were lost');
    }
  };
  const timer = setInterval(look, periodMilliseconds);
  return {
    get count() {
      return count;
    },
    look,
    stop: () => clearInterval(timer),
  };
}
