/**
 * Owns where words go: results on standard output, as lines or as one JSON object; progress and complaints on standard
 * error. Must never print a secret that the caller did not mean to show.
 */
import { writeSync } from 'node:fs';

export type Format = 'text' | 'json';

export interface Output {
  readonly format: Format;
  /** The command's result: `text` for people, or `value` as one line of JSON. */
  result(text: string, value: unknown): void;
  /** For the person at the terminal, on standard error. */
  progress(text: string): void;
}

export function createOutput(format: Format): Output {
  return {
    format,
    result: (text, value) => writeAll(1, `${format === 'json' ? JSON.stringify(value) : text}\n`),
    progress: (text) => writeAll(2, `${text}\n`),
  };
}

/** Something expected went wrong: ends the command with one sentence and no stack trace. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  /** @param exitCode 1: it did not work; 2: it was asked for wrongly. */
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Synchronous, so that nothing is lost when the process exits next; a reader that is gone is no reason to fail. */
function writeAll(descriptor: 1 | 2, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
