/**
 * Brings the kernel's table to a set of entries (rules and filters), and the compiler with it: one transaction where the
 * kernel agrees, a search for the entries that it refuses where it does not. Owns the agreement of compiler and kernel:
 * `commit` follows the kernel's yes and nothing else. Knows no control plane, no files, no wire fields.
 *
 * In force afterwards are exactly the wanted entries without the refused ones; one whose new form is refused does not
 * stay in its former one, because a restart could not tell.
 */
import type { Entry } from '@levee/core/filter/entry.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import type { Compiler, Plan } from '@levee/core/nftables/compiler.ts';
import type { NftDriver } from '../drivers/nft/port.ts';
import type { EntryDelta } from './desired.ts';
import { isEnvironmental, refusalReason, troubleReason } from './refusal.ts';

export type Installed =
  | {
      readonly ok: true;
      /** What the kernel's table bears now. */
      readonly mark: string | undefined;
      /** Entries of this call that the kernel refuses, with the reason. */
      readonly refused: ReadonlyMap<string, string>;
      readonly kernelMilliseconds: number;
    }
  /** The machine, not an entry: a part may be in force; ask again with at least the same ones. */
  | {
      readonly ok: false;
      readonly reason: string;
      /** The kernel's table is not what the compiler takes it for: only `replace` helps. */
      readonly tableInDoubt: boolean;
    };

export type FlushedChains = readonly string[] | 'all';

export interface InstallerOptions {
  readonly driver: NftDriver;
  readonly createCompiler: () => Compiler;
  /** Sixteen lower-case hexadecimal digits, never the same twice. */
  readonly newMark: () => string;
  /** The mark in the kernel's table; undefined when there is no table of ours. */
  readonly readMark: () => Promise<string | undefined>;
  /** Right before a transaction, after it was compiled: the counters of these chains are about to be lost. */
  readonly beforeFlush: (chains: FlushedChains, compiler: Compiler) => Promise<void> | void;
  /** Right before a transaction from which on conntrack sees the traffic of these prefixes. Never fails. */
  readonly beforeTracking?: (prefixes: readonly Prefix[]) => Promise<void>;
  /** The kernel took it. */
  readonly afterFlush: (chains: FlushedChains) => void;
  /** Brackets whatever may move the kernel's generation. */
  readonly own: <T>(work: () => Promise<T>, whole: boolean) => Promise<T>;
}

export interface Installer {
  readonly compiler: Compiler;
  /** The mark of the last transaction that the kernel took, or that was adopted. */
  readonly mark: string | undefined;
  /** Takes the table as it is for these entries: they were installed under this mark. Sends nothing. */
  adopt(entries: readonly Entry[], mark: string): void;
  change(delta: EntryDelta, mark: string): Promise<Installed>;
  /** The whole table anew, in one transaction. */
  replace(entries: readonly Entry[], mark: string): Promise<Installed>;
}

type Attempt =
  | { readonly ok: true }
  /** `thrown`: by the compiler, which is then not to be trusted any further. */
  | { readonly ok: false; readonly message: string; readonly thrown?: true; readonly unreachable?: true };

export function createInstaller(options: InstallerOptions): Installer {
  const { driver, newMark } = options;
  let compiler = options.createCompiler();
  let installedMark: string | undefined;
  let kernelMilliseconds = 0;

  const send = async (plan: Plan, mark: string, flushed: FlushedChains): Promise<Attempt> => {
    if (plan.text !== '') {
      await options.beforeFlush(flushed, compiler);
      if (plan.beginsTracking.length > 0) await options.beforeTracking?.(plan.beginsTracking);
      const began = performance.now();
      let result: Attempt;
      try {
        result = await options.own(() => driver.apply(plan.text), flushed === 'all');
      } catch (error) {
        // No nft to be started, no netlink to be read: nobody can say what the kernel did.
        return { ok: false, message: `nft cannot be run: ${(error as Error).message}`, unreachable: true };
      }
      kernelMilliseconds += performance.now() - began;
      if (!result.ok) return result;
      options.afterFlush(flushed);
      installedMark = mark;
    }
    plan.commit();
    return { ok: true };
  };

  const attempt = (compile: () => Plan, mark: string, flushed?: 'all'): Promise<Attempt> => {
    let plan: Plan;
    try {
      plan = compile();
    } catch (error) {
      return Promise.resolve({ ok: false, message: `cannot be compiled: ${(error as Error).message}`, thrown: true });
    }
    return send(plan, mark, flushed ?? plan.flushedChains);
  };

  const attemptChange = (delta: EntryDelta, mark: string): Promise<Attempt> =>
    attempt(() => compiler.change(delta, mark), mark);

  const done = (refused: ReadonlyMap<string, string> = new Map()): Installed => ({
    ok: true,
    mark: installedMark,
    refused,
    kernelMilliseconds,
  });

  const failed = (message: string, tableInDoubt = false): Installed => ({
    ok: false,
    reason: troubleReason(message),
    tableInDoubt,
  });

  /**
   * Halves until single entries are left: about 2·log2(n) transactions a refused one. Gives the message when the machine
   * fails.
   */
  const bisectChange = async (entries: readonly Entry[], refused: Map<string, string>): Promise<string | undefined> => {
    if (entries.length === 0) return undefined;
    if (entries.length > 1) {
      const middle = entries.length >> 1;
      for (const half of [entries.slice(0, middle), entries.slice(middle)]) {
        const result = await attemptChange({ upsert: half, remove: [] }, newMark());
        if (result.ok) continue;
        if (isEnvironmental(result.message)) return result.message;
        const problem = await bisectChange(half, refused);
        if (problem !== undefined) return problem;
      }
      return undefined;
    }
    const [entry] = entries as readonly [Entry];
    const result = await attemptChange({ upsert: [entry], remove: [] }, newMark());
    if (result.ok) return undefined;
    if (isEnvironmental(result.message)) return result.message;
    refused.set(entry.uuid, refusalReason(result.message));
    const removal = await attemptChange({ upsert: [], remove: [entry.uuid] }, newMark());
    return removal.ok ? undefined : removal.message;
  };

  /**
   * The entries that the kernel would refuse, judged on trial tables that are never kept. One that the compiler cannot
   * express counts as refused: it never stops the others.
   */
  const bisectReplace = async (
    entries: readonly Entry[],
    refused: Map<string, string>,
  ): Promise<string | undefined> => {
    const result = await attemptTrial(entries);
    if (result.ok) return undefined;
    if (isEnvironmental(result.message)) return result.message;
    if (entries.length === 0) return result.message;
    if (entries.length === 1) {
      refused.set((entries[0] as Entry).uuid, refusalReason(result.message));
      return undefined;
    }
    const middle = entries.length >> 1;
    return (
      (await bisectReplace(entries.slice(0, middle), refused)) ?? (await bisectReplace(entries.slice(middle), refused))
    );
  };

  const attemptTrial = async (entries: readonly Entry[]): Promise<Attempt> => {
    try {
      return await driver.check(options.createCompiler().replace(entries, newMark()).text);
    } catch (error) {
      return { ok: false, message: `cannot be compiled: ${(error as Error).message}` };
    }
  };

  const attemptReplace = async (entries: readonly Entry[], mark: string): Promise<Attempt> => {
    // A new compiler: what the former one believed about the kernel no longer counts.
    const next = options.createCompiler();
    const result = await attempt(() => next.replace(entries, mark), mark, 'all');
    if (result.ok) compiler = next;
    return result;
  };

  const replace = async (entries: readonly Entry[], mark: string): Promise<Installed> => {
    const first = await attemptReplace(entries, mark);
    if (first.ok) return done();
    if (isEnvironmental(first.message) || first.unreachable) return failed(first.message, true);
    const refused = new Map<string, string>();
    const problem = await bisectReplace(entries, refused);
    if (problem !== undefined) return failed(problem, true);
    const rest = entries.filter((entry) => !refused.has(entry.uuid));
    const second = await attemptReplace(rest, newMark());
    return second.ok ? done(refused) : failed(second.message, true);
  };

  return {
    get compiler() {
      return compiler;
    },
    get mark() {
      return installedMark;
    },
    adopt(entries, mark) {
      compiler = options.createCompiler();
      compiler.replace(entries, mark).commit();
      installedMark = mark;
    },
    async replace(entries, mark) {
      kernelMilliseconds = 0;
      return replace(entries, mark);
    },
    async change(delta, mark) {
      kernelMilliseconds = 0;
      const first = await attemptChange(delta, mark);
      if (first.ok) return done();
      if (isEnvironmental(first.message)) return failed(first.message);
      if (first.thrown || first.unreachable) return failed(first.message, true);
      // Somebody took our table away or put another in its place: no entry of this change is to blame.
      if ((await options.readMark()) !== installedMark) return failed(first.message, true);
      if (delta.remove.length > 0) {
        const removal = await attemptChange({ upsert: [], remove: delta.remove }, newMark());
        if (!removal.ok) return failed(removal.message, !isEnvironmental(removal.message));
      }
      const refused = new Map<string, string>();
      const problem = await bisectChange(delta.upsert, refused);
      return problem === undefined ? done(refused) : failed(problem, !isEnvironmental(problem));
    },
  };
}
