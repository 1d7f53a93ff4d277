/** One authenticated request as an operation sees it, and what the operation hands back. Holds no logic. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Problem } from '@levee/contract/errors.ts';
import type { WaitOutcome } from '../agents/applied-view.ts';
import type { AuditEntry, Origin } from '../commands/audit.ts';
import type { Caller } from '../commands/caller.ts';
import type { Executor } from '../commands/executor.ts';
import type { Failure } from '../commands/outcome.ts';
import type { Cursor } from '../store/cursor.ts';

export interface Call {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  /** Checked against the operation's query schema (not yet when `judge` sees it). */
  readonly query: Readonly<Record<string, unknown>>;
  /** Checked against the operation's body schema, as the query is; a rule's own fields are core's to check. */
  readonly body: unknown;
  readonly raw: IncomingMessage;
  /** Where it came from and its id: for the audit log. */
  readonly origin: Origin;
}

/** A good answer: text, octets, or a stream of text. */
export interface Answer {
  readonly body: string | Uint8Array | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Instead of `body`: writes the response itself, beginning with its head and these headers. Called once in any case; when
   * the head was sent already, only to let go of what it holds.
   */
  readonly takeOver?: (response: ServerResponse, headers: OutgoingHttpHeaders) => void;
}

export type Answered =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly failure: Failure };

/** What a request says, beyond what its schema can tell; or all that is wrong with it. */
export type Judged =
  | { readonly ok: true; readonly value?: unknown }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * The checks that need no database. It runs also when the schemas found faults, so that the caller is told everything
 * at once: what it reads may be of any type then, and a good outcome is not used. Must be synchronous and cheap.
 */
type Judge = (call: Call, found: readonly Problem[]) => Judged;

/** Reads only. `judged`: what `judge` made of the request. */
export interface ReadHandler {
  readonly judge?: Judge;
  read(call: Call, judged: unknown): Answered | Promise<Answered>;
}

/**
 * Writes. `run` gets an executor: a transaction's, or, when `alone` is true, the pool's, because the command is a
 * single statement. `render` is called when the rows are there: before the commit (to keep the answer for a repeated
 * request) and again after a wait.
 */
export interface Written {
  readonly change?: Cursor | undefined;
  /** The objects that shall be in force with the change. */
  readonly uuids?: readonly string[];
  readonly render: () => string | Promise<string>;
  /**
   * What was done, for the audit log: kept in the transaction of `run`. Empty: nothing is different from before. `kept`:
   * the command's own statement wrote the entries.
   */
  readonly audit: readonly AuditEntry[] | 'kept';
  /** How to learn what becomes of a change that is not the routers' to carry out; absent: ask them. */
  readonly settled?: (milliseconds: number) => Promise<WaitOutcome>;
  /** Called once after the commit; the answer waits for it. Never throws: what was committed is done. */
  readonly committed?: () => void | Promise<void>;
}

export type Wrote = { readonly ok: true; readonly value: Written } | { readonly ok: false; readonly failure: Failure };

export interface WriteHandler {
  readonly alone?: boolean;
  readonly judge?: Judge;
  /** Work that must not hold a transaction open (hashing a password); its result goes to `run` instead of `judged`. */
  prepare?(judged: unknown): Promise<unknown>;
  run(call: Call, executor: Executor, judged: unknown): Promise<Wrote>;
}

export type Handler = ReadHandler | { readonly write: WriteHandler };

/** Members of a value that may be of any type: none of what is no object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : {};
}

/** Whether the schema found nothing wrong at the field (a JSON pointer, or `?name`) or inside it. */
export function isSound(found: readonly Problem[], field: string): boolean {
  return !found.some((problem) => problem.field === field || problem.field.startsWith(`${field}/`));
}

export function judgedBy(problems: readonly Problem[], value?: unknown): Judged {
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value };
}
