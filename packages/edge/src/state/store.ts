/**
 * The edge's own files: a snapshot of the desired state, and a journal of what came after it. Owns their names, order
 * and durability; knows nothing of kernels or control planes.
 *
 * `desired.<n>.snapshot` is whole or absent (written aside, synced, renamed). `desired.<n>.journal` follows it, and
 * journals of higher numbers follow that one: a compaction opens the next journal first and writes the snapshot of the
 * same moment beside the running work, so 100 k rules are never rewritten while a change waits.
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
import type { AgentRule } from '@levee/contract/agent.ts';
import type { DesiredState, JournalEntry, Refusals } from './entry.ts';
import { readRecords, renderRecord } from './record.ts';

export interface LoadedState {
  readonly base: DesiredState & { readonly rules: Map<string, AgentRule> };
  /** Oldest first. */
  readonly entries: readonly JournalEntry[];
}

export interface StateStore {
  /** What the last run left; undefined when there is nothing whole. */
  load(): LoadedState | undefined;
  /** Written to the file on return; the promise resolves once it is on the disk. Needs a loaded or replaced state. */
  append(entry: JournalEntry): Promise<void>;
  /** Makes this the whole state. Nothing may be appended before it resolves. */
  replace(state: DesiredState): Promise<void>;
  /** Starts folding the journal into a new snapshot of `state` (the state after the last entry), if it is worth it. */
  compact(state: DesiredState): void;
  close(): Promise<void>;
}

interface SnapshotHead {
  readonly version: 1;
  readonly cursor: string;
  readonly mark?: string;
  readonly refused: Refusals;
  readonly count: number;
}

const rulesPerRecord = 250;
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

  const writeSnapshot = async (number: number, state: DesiredState, rules: readonly AgentRule[]): Promise<void> => {
    const aside = `${path(number, 'snapshot')}.tmp`;
    const file = await open(aside, 'w', 0o600);
    try {
      const head: SnapshotHead = {
        version: 1,
        cursor: state.cursor,
        ...(state.mark === undefined ? {} : { mark: state.mark }),
        refused: state.refused,
        count: rules.length,
      };
      snapshotBytes = await writeRecords(file, head, rules);
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
    await writeSnapshot(number, state, [...state.rules.values()]);
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
      const rules = [...state.rules.values()];
      openJournal(number);
      folding = writeSnapshot(number, state, rules)
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

async function writeRecords(file: FileHandle, head: SnapshotHead, rules: readonly AgentRule[]): Promise<number> {
  let bytes = 0;
  const write = async (value: unknown): Promise<void> => {
    const record = Buffer.from(renderRecord(value));
    bytes += record.length;
    await file.writeFile(record);
  };
  await write(head);
  for (let at = 0; at < rules.length; at += rulesPerRecord) await write(rules.slice(at, at + rulesPerRecord));
  return bytes;
}

function readSnapshot(path: string): LoadedState['base'] | undefined {
  const { records } = readRecords(readFileSync(path));
  const head = records[0] as SnapshotHead | undefined;
  if (head?.version !== 1) return undefined;
  const rules = new Map<string, AgentRule>();
  for (const record of records.slice(1)) for (const rule of record as AgentRule[]) rules.set(rule.uuid, rule);
  if (rules.size !== head.count) return undefined;
  return { cursor: head.cursor, mark: head.mark, refused: head.refused, rules };
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
