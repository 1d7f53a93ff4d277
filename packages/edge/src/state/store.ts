/**
 * The edge's own files: a snapshot of the desired state, and a journal of what came after it. Owns their names, order
 * and durability; knows nothing of kernels or control planes.
 *
 * `desired.<n>.snapshot` is whole or absent (written aside, synced, renamed). `desired.<n>.journal` follows it, and
 * journals of higher numbers follow that one: a compaction opens the next journal first and writes the snapshot of the
 * same moment beside the running work, so 100 k rules are never rewritten while a change waits.
 *
 * Format 2 holds rules, filters and tunnels. Format 1 (rules alone) is read, and written anew as 2 with the next snapshot;
 * a newer one is refused and left as it is.
 */
import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentRule, AgentTunnel } from '@levee/contract/agent.ts';
import type { DesiredState, JournalEntry, Objects, Refusals } from './desired-state.ts';
import type { AgentEntry } from './objects.ts';
import { readRecords, renderRecord } from './record.ts';

export interface LoadedState {
  readonly base: DesiredState & Objects;
  /** Oldest first. */
  readonly entries: readonly JournalEntry[];
}

export interface StateStore {
  /** What the last run left; undefined when there is nothing whole. Throws when a newer release wrote it. */
  load(): LoadedState | undefined;
  /** Written to the file on return; the promise resolves once it is on the disk. Needs a loaded or replaced state. */
  append(entry: JournalEntry): Promise<void>;
  /** Makes this the whole state. Nothing may be appended before it resolves. */
  replace(state: DesiredState): Promise<void>;
  /** Starts folding the journal into a new snapshot of `state` (the state after the last entry), if it is worth it. */
  compact(state: DesiredState): void;
  close(): Promise<void>;
}

const formatVersion = 2;

/** A snapshot's first record; those behind it hold `SnapshotPart`s. */
interface SnapshotHead {
  readonly version: number;
  readonly cursor: string;
  readonly complete: boolean;
  readonly mark?: string;
  readonly refused: Refusals;
  readonly entries: number;
  readonly tunnels: number;
}

type SnapshotPart = { readonly entries: readonly AgentEntry[] } | { readonly tunnels: readonly AgentTunnel[] };

/** Behind it: lists of rules. */
interface RulesHead {
  readonly version: 1;
  readonly cursor: string;
  readonly mark?: string;
  readonly refused: Refusals;
  readonly count: number;
}

const objectsPerRecord = 250;
/** A journal shorter than this is read faster than it is folded. */
const leastJournalBytes = 4 << 20;

export function openStateStore(directory: string, foldAboveBytes: number = leastJournalBytes): StateStore {
  const path = (number: number, kind: 'snapshot' | 'journal'): string => join(directory, `desired.${number}.${kind}`);
  let journal: { number: number; fd: number; bytes: number } | undefined;
  let snapshotBytes = 0;
  let folding: Promise<void> | undefined;
  let replacing: Promise<void> | undefined;
  let closed = false;
  let syncing: Promise<void> | undefined;
  let queued: Promise<void> | undefined;

  const numbers = (kind: string): number[] =>
    readdirSync(directory)
      .map((name) => new RegExp(`^desired\\.(\\d{1,15})\\.${kind}$`).exec(name))
      .flatMap((match) => (match ? [Number(match[1])] : []))
      .sort((a, b) => a - b);

  const openJournal = (number: number): void => {
    const previous = journal;
    journal = { number, fd: openSync(path(number, 'journal'), 'a', 0o600), bytes: 0 };
    if (previous === undefined) return;
    fsyncSync(previous.fd);
    // A sync that is under way on a thread still holds the number.
    const close = (): void => closeSync(previous.fd);
    if (syncing) syncing.then(close, close);
    else close();
  };

  const syncDirectory = (): void => {
    const fd = openSync(directory, 'r');
    fsyncSync(fd);
    closeSync(fd);
  };

  const writeSnapshot = async (number: number, state: DesiredState): Promise<void> => {
    // At once: the maps go on changing while this is written.
    const entries = [...state.entries.values()];
    const tunnels = [...state.tunnels.values()];
    const aside = `${path(number, 'snapshot')}.tmp`;
    const file = await open(aside, 'w', 0o600);
    try {
      const head: SnapshotHead = {
        version: formatVersion,
        cursor: state.cursor,
        complete: state.complete,
        ...(state.mark === undefined ? {} : { mark: state.mark }),
        refused: state.refused,
        entries: entries.length,
        tunnels: tunnels.length,
      };
      snapshotBytes = await writeRecords(file, head, [
        ...pages(entries).map((page) => ({ entries: page })),
        ...pages(tunnels).map((page) => ({ tunnels: page })),
      ]);
      await file.sync();
    } finally {
      await file.close();
    }
    renameSync(aside, path(number, 'snapshot'));
    syncDirectory();
  };

  const removeBelow = (number: number): void => {
    for (const kind of ['snapshot', 'journal'] as const) {
      for (const old of numbers(kind)) if (old < number) rmSync(path(old, kind), { force: true });
    }
  };

  /** One sync at a time; whoever asks during one shares the next. */
  const sync = (): Promise<void> => {
    if (syncing === undefined) {
      syncing = syncFile(journal?.fd).finally(() => {
        syncing = undefined;
      });
      return syncing;
    }
    queued ??= syncing
      .catch(() => undefined)
      .then(() => {
        queued = undefined;
        return sync();
      });
    return queued;
  };

  const replaceBy = async (state: DesiredState): Promise<void> => {
    await folding?.catch(() => undefined);
    const number = Math.max(0, ...numbers('snapshot'), ...numbers('journal')) + 1;
    await writeSnapshot(number, state);
    openJournal(number);
    removeBelow(number);
  };

  return {
    load() {
      for (const number of numbers('snapshot').reverse()) {
        const base = readSnapshot(path(number, 'snapshot'));
        if (base === undefined) continue;
        const entries: JournalEntry[] = [];
        let last = number;
        let torn = false;
        for (const each of numbers('journal')) {
          if (each < number) continue;
          // Behind a torn journal nothing can be joined on: the control plane sends it again from the older cursor.
          if (torn) {
            rmSync(path(each, 'journal'), { force: true });
            continue;
          }
          last = each;
          const bytes = readFileSync(path(each, 'journal'));
          const { records, wholeBytes } = readRecords(bytes);
          for (const record of records) entries.push(record as JournalEntry);
          if (wholeBytes < bytes.length) {
            truncateSync(path(each, 'journal'), wholeBytes);
            torn = true;
          }
        }
        openJournal(last);
        if (journal) journal.bytes = existsSync(path(last, 'journal')) ? readFileSync(path(last, 'journal')).length : 0;
        return { base, entries };
      }
      return undefined;
    },
    append(entry) {
      if (journal === undefined) throw new Error('nothing to append to: no state was loaded or replaced');
      const record = Buffer.from(renderRecord(entry));
      writeWhole(journal.fd, record);
      journal.bytes += record.length;
      return sync();
    },
    replace(state) {
      if (closed) return Promise.reject(new Error('the state store is closed'));
      replacing = replaceBy(state);
      return replacing;
    },
    compact(state) {
      if (closed || folding || journal === undefined || journal.bytes < Math.max(foldAboveBytes, snapshotBytes)) return;
      const number = journal.number + 1;
      openJournal(number);
      folding = writeSnapshot(number, state)
        .then(() => removeBelow(number))
        .finally(() => {
          folding = undefined;
        });
      // A disk that is full or gone: the older files still hold everything; the next fold tries again.
      folding.catch(() => undefined);
    },
    async close() {
      closed = true;
      await replacing?.catch(() => undefined);
      await folding?.catch(() => undefined);
      await queued?.catch(() => undefined);
      await syncing?.catch(() => undefined);
      if (journal) {
        fsyncSync(journal.fd);
        closeSync(journal.fd);
      }
      journal = undefined;
    },
  };
}

function pages<T>(objects: readonly T[]): T[][] {
  const found: T[][] = [];
  for (let at = 0; at < objects.length; at += objectsPerRecord) found.push(objects.slice(at, at + objectsPerRecord));
  return found;
}

async function writeRecords(file: FileHandle, head: SnapshotHead, parts: readonly SnapshotPart[]): Promise<number> {
  let bytes = 0;
  for (const value of [head, ...parts]) {
    const record = Buffer.from(renderRecord(value));
    bytes += record.length;
    await file.writeFile(record);
  }
  return bytes;
}

/** Undefined when it is damaged. */
function readSnapshot(path: string): LoadedState['base'] | undefined {
  const { records } = readRecords(readFileSync(path));
  const [head, ...parts] = records as [SnapshotHead | RulesHead | undefined, ...unknown[]];
  if (head === undefined) return undefined;
  if (head.version > formatVersion) {
    throw new Error(
      `${path} was written by a newer release (format ${head.version}, this one reads up to ${formatVersion}): start that release, or move the desired.* files out of the state directory to begin with what the control plane sends`,
    );
  }
  return 'count' in head ? readRules(head, parts as AgentRule[][]) : readObjects(head, parts as SnapshotPart[]);
}

function readObjects(head: SnapshotHead, parts: readonly SnapshotPart[]): LoadedState['base'] | undefined {
  const entries = new Map<string, AgentEntry>();
  const tunnels = new Map<string, AgentTunnel>();
  for (const part of parts) {
    if ('entries' in part) for (const entry of part.entries) entries.set(entry.uuid, entry);
    else for (const tunnel of part.tunnels) tunnels.set(tunnel.uuid, tunnel);
  }
  if (entries.size !== head.entries || tunnels.size !== head.tunnels) return undefined;
  const { cursor, complete, mark, refused } = head;
  return { cursor, complete, mark, refused, entries, tunnels };
}

function readRules(head: RulesHead, parts: readonly AgentRule[][]): LoadedState['base'] | undefined {
  const entries = new Map<string, AgentEntry>(parts.flat().map((rule) => [rule.uuid, rule]));
  if (entries.size !== head.count) return undefined;
  const { cursor, mark, refused } = head;
  return { cursor, complete: false, mark, refused, entries, tunnels: new Map() };
}

function syncFile(fd: number | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (fd === undefined) resolve();
    else fdatasync(fd, (error) => (error ? reject(error) : resolve()));
  });
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
