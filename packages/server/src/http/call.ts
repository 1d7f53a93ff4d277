/** One authenticated request as an operation sees it, and what the operation hands back. Holds no logic. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Caller } from '../commands/caller.ts';
import type { Executor } from '../commands/executor.ts';
import type { Failure } from '../commands/outcome.ts';
import type { Cursor } from '../store/cursor.ts';

export interface Call {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  /** Checked against the operation's query schema. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Checked against the operation's body schema; a rule's own fields are core's to check. */
  readonly body: unknown;
  readonly raw: IncomingMessage;
}

/** A good answer: JSON text, or a stream of it. */
export interface Answer {
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Answered =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly failure: Failure };

/** Reads only. */
export type ReadHandler = (call: Call) => Answered | Promise<Answered>;

/**
 * Writes. `run` gets an executor: a transaction's, or, when `alone` is true, the pool's, because the command is a
 * single statement. `render` is called when the rows are there: before the commit (to keep the answer for a repeated
 * request) and again after a wait.
 */
export interface Written {
  readonly change?: Cursor | undefined;
  readonly render: () => string;
  /** Called once after the commit. */
  readonly committed?: () => void;
}

export type Wrote = { readonly ok: true; readonly value: Written } | { readonly ok: false; readonly failure: Failure };

export interface WriteHandler {
  readonly alone?: boolean;
  /** Work that must not hold a transaction open (hashing a password); its result goes to `run`. */
  readonly prepare?: (call: Call) => Promise<{ ok: true; value: unknown } | { ok: false; failure: Failure }>;
  readonly run: (call: Call, executor: Executor, prepared: unknown) => Promise<Wrote>;
}

export type Handler = { readonly read: ReadHandler } | { readonly write: WriteHandler };
