/**
 * Deletes devices that carry nothing any more, in small batches between the passes: the kernel lets nobody else change
 * links meanwhile. Owns pace and progress.
 */
import { randomInt } from 'node:crypto';
import type { LinkDriver } from '../drivers/link/port.ts';

export interface Removal {
  /** Devices still to be deleted. */
  readonly count: number;
  /** All that are to be deleted now, by name, as just seen. Returns at once. */
  set(names: readonly string[]): void;
  stop(): void;
}

export interface RemovalOptions {
  readonly links: LinkDriver;
  /** Runs the work when nobody looks at links or changes them. */
  readonly alone: (work: () => Promise<void>) => Promise<void>;
  /** After a batch that failed. */
  readonly retryMilliseconds: number;
  readonly failed: (reason: string) => void;
}

/**
 * One by one a device takes the kernel 15 ms, because each waits until no processor can be using it any more; the members
 * of a group wait together (200 devices under emulation: 227 ms instead of 4.2 s). So a batch is put into a group of its
 * own, of a number that nobody can know, and the group is deleted.
 */
const batchSize = 32;
const pauseMilliseconds = 50;
const groupBounds = { least: 2 ** 24, most: 2 ** 31 - 1 };

export function createRemoval({ links, alone, retryMilliseconds, failed }: RemovalOptions): Removal {
  let waiting: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let busy = false;
  let stopped = false;

  const batch = async (): Promise<void> => {
    const names = waiting.slice(0, batchSize);
    if (names.length === 0 || stopped) return;
    const group = randomInt(groupBounds.least, groupBounds.most);
    const results = await links.run([
      ...names.map((name) => `link set dev ${name} group ${group}`),
      `link delete group ${group}`,
    ]);
    const reason = results.at(-1);
    // Somebody else may have deleted them; when it was all of them, there is no such group.
    const allGone = results.slice(0, -1).every((result) => result !== undefined);
    if (reason !== undefined && !allGone) throw new Error(reason);
    waiting = waiting.slice(names.length);
  };
  const schedule = (milliseconds: number): void => {
    if (stopped || busy || waiting.length === 0) return;
    busy = true;
    timer = setTimeout(async () => {
      let pause = pauseMilliseconds;
      try {
        await alone(batch);
      } catch (error) {
        failed((error as Error).message);
        pause = retryMilliseconds;
      }
      busy = false;
      schedule(pause);
    }, milliseconds);
  };
  return {
    get count() {
      return waiting.length;
    },
    set(names) {
      waiting = names;
      schedule(0);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
