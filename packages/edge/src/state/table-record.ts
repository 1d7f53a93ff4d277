/**
 * Remembers in the state directory that a table of ours was put into a kernel, and into which one, for a later run that
 * cannot look. Owns the file `kernel-table.json`; never looks at the kernel's tables itself.
 *
 * Not synced: a crash of the machine that loses the file takes the table along.
 */
import { readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A network namespace of one boot. Null: not known. */
export interface TablePlace {
  /** /proc/sys/kernel/random/boot_id (random(4)) */
  readonly boot_id: string | null;
  /** `net:[inode]` (namespaces(7)) */
  readonly netns: string | null;
}

/** Surely the same; what is not known is the same as nothing. */
export function isSamePlace(one: TablePlace, other: TablePlace): boolean {
  return one.boot_id !== null && one.netns !== null && one.boot_id === other.boot_id && one.netns === other.netns;
}

export interface TableRecord {
  /** A table of ours is about to be put in here. Throws when the file cannot be written. */
  note(): void;
  /** Undefined: none was, or it is known to be gone. */
  read(): TablePlace | undefined;
  /** It is known to be gone. */
  forget(): void;
}

export const tableRecordFile = 'kernel-table.json';

export function thisPlace(): TablePlace {
  const known = (read: () => string): string | null => {
    try {
      return read();
    } catch {
      return null;
    }
  };
  return {
    boot_id: known(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    netns: known(() => readlinkSync('/proc/thread-self/ns/net')),
  };
}

export function openTableRecord(directory: string, place: () => TablePlace = thisPlace): TableRecord {
  const path = join(directory, tableRecordFile);
  let noted = false;
  return {
    note() {
      if (noted) return;
      writeFileSync(`${path}.tmp`, `${JSON.stringify(place())}\n`, { mode: 0o600 });
      renameSync(`${path}.tmp`, path);
      noted = true;
    },
    read() {
      let text: string;
      try {
        text = readFileSync(path, 'utf8');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
      return placeOf(text);
    },
    forget() {
      rmSync(path, { force: true });
      noted = false;
    },
  };
}

/** What cannot be read says that there was a table, and nothing of where. */
function placeOf(text: string): TablePlace {
  const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  try {
    const { boot_id, netns } = JSON.parse(text) as Record<string, unknown>;
    return { boot_id: textOrNull(boot_id), netns: textOrNull(netns) };
  } catch {
    return { boot_id: null, netns: null };
  }
}
