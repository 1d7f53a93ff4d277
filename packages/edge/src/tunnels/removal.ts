/**
 * Deletes devices that carry nothing any more, in the background and in small batches: the kernel lets nobody else change
 * links meanwhile. Owns pace and progress. A device that is wanted again leaves the list.
 */
import { randomInt } from 'node:crypto';
import type { LinkDriver } from '../drivers/link/port.ts';

export interface Removal {
  /** Devices still to be deleted. */
  readonly count: number;
  /** All that are to be deleted now, by name. Returns at once. */
  set(names: readonly string[]): void;
  /** Takes them off the list. True: a batch that had some of them was under way, and is over. */
  spare(names: ReadonlySet<string>): Promise<boolean>;
  stop(): Promise<void>;
}

/**
 * One by one a device takes the kernel 15 ms, because each waits until no processor can be using it any more; the members
 * of a group wait together (200 devices under emulation: 227 ms instead of 4.2 s). So a batch is put into a group of its
 * own, of a number that nobody can know, and the group is deleted.
 */
const batchSize = 32;
const pauseMilliseconds = 50;
const groupBounds = { least: 2 ** 24, most: 2 ** 31 - 1 };

/** What fails is tried again after `retryMilliseconds`. */
export function createRemoval(links: LinkDriver, retryMilliseconds: number, failed: (reason: string) => void): Removal {
  let waiting: string[] = [];
  let current: Promise<void> | undefined;
  let currentNames: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const batch = async (names: readonly string[]): Promise<void> => {
    const group = randomInt(groupBounds.least, groupBounds.most);
    const lines = [...names.map((name) => `link set dev ${name} group ${group}`), `link delete group ${group}`];
    const results = await links.run(lines);
    const reason = results.at(-1);
    // One that somebody else deleted is gone as well; when all were, there is no such group.
    const allGone = results.slice(0, -1).every((result) => result !== undefined);
    if (reason !== undefined && !allGone) throw new Error(reason);
  };
  const next = (milliseconds: number): void => {
    if (stopped || timer !== undefined || current !== undefined || waiting.length === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      const names = waiting.slice(0, batchSize);
      currentNames = names;
      current = batch(names)
        .then(
          () => {
            waiting = waiting.filter((name) => !names.includes(name));
            return pauseMilliseconds;
          },
          (error: Error) => {
            failed(error.message);
            return retryMilliseconds;
          },
        )
        .then((pause) => {
          current = undefined;
          currentNames = [];
          next(pause);
        });
    }, milliseconds);
    timer.unref();
  };
  return {
    get count() {
      return waiting.length;
    },
    set(names) {
      waiting = [...names];
      next(0);
    },
    async spare(names) {
      waiting = waiting.filter((name) => !names.has(name));
      if (!currentNames.some((name) => names.has(name))) return false;
      await current;
      return true;
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}
