/** The name of a request in its answer and in the log: the client's own when it is well-formed, else a fresh one. */
import { randomUUID } from 'node:crypto';

const wellFormed = /^[A-Za-z0-9._-]{1,128}$/;

export function requestIdOf(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' && wellFormed.test(header) ? header : randomUUID();
}
