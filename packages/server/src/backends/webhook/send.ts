/**
 * One attempt to deliver: a POST to one of the addresses that were judged, and to nothing else. Follows no redirect, reads
 * 1 KiB of an answer at most, gives up after a while. Decides nothing about another attempt.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { hostOf } from '@levee/core/webhook/target-url.ts';
import type { JudgeTarget } from './target.ts';

export interface Message {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Attempt {
  readonly delivered: boolean;
  readonly status?: number | undefined;
  /** Where it was not delivered. One sentence. */
  readonly error?: string | undefined;
  /** From the answer's `Retry-After`, if it gives seconds. */
  readonly retryAfterSeconds?: number | undefined;
}

export const ATTEMPT_MILLISECONDS = 10_000;
const ANSWER_MAXIMUM_BYTES = 1024;

/** Never throws. `signal` gives up at once. */
export async function send(
  { url, headers, body }: Message,
  judge: JudgeTarget,
  signal: AbortSignal,
  milliseconds = ATTEMPT_MILLISECONDS,
): Promise<Attempt> {
  const deadline = AbortSignal.timeout(milliseconds);
  const late = `no answer within ${milliseconds / 1000} s`;
  try {
    const target = await Promise.race([judge(url), rejectedBy(AbortSignal.any([signal, deadline]))]);
    if (!target.ok) return { delivered: false, error: target.sentence };
    const bytes = Buffer.from(body);
    const response = await exchange(url, bytes, {
      method: 'POST',
      // No connection is kept: the next attempt is judged anew.
      agent: false,
      headers: { ...headers, 'content-length': bytes.length },
      signal: AbortSignal.any([signal, deadline]),
      lookup: onlyTo(target.addresses),
    });
    return judgeAnswer(response);
  } catch (error) {
    return { delivered: false, error: deadline.aborted ? late : sentenceOf(url, error) };
  }
}

/** Whoever connects asks for the host's addresses, and is told those that were judged. */
function onlyTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_host, options, callback) => {
    const [first] = all;
    if (options.all) callback(null, all);
    else callback(null, first?.address ?? '', first?.family);
  };
}

function exchange(url: URL, body: Buffer, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options);
    request.on('error', reject);
    request.on('response', (response) => {
      let read = 0;
      // The head says all; the rest is taken politely, as far as it goes.
      const enough = () => {
        resolve(response);
        response.destroy();
      };
      response.on('data', (part: Buffer) => {
        read += part.length;
        if (read >= ANSWER_MAXIMUM_BYTES) enough();
      });
      response.on('end', enough);
      response.on('error', enough);
      response.on('close', enough);
    });
    request.end(body);
  });
}

function judgeAnswer({ statusCode: status = 0, headers }: IncomingMessage): Attempt {
  if (status >= 200 && status < 300) return { delivered: true, status };
  const seconds = /^\d{1,6}$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : undefined;
  const isRedirect = status >= 300 && status < 400;
  const error = `answered with status ${status}${isRedirect ? ': redirects are not followed' : ''}`;
  return { delivered: false, status, error, retryAfterSeconds: seconds };
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function sentenceOf(url: URL, error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const { code, message } = first as NodeJS.ErrnoException;
  const host = hostOf(url);
  switch (code) {
    case 'ECONNREFUSED':
      return `${host} refuses connections to port ${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
    case 'ECONNRESET':
    case 'EPIPE':
      return `${host} ended the connection without an answer`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `there is no way to ${host} (${code})`;
    default:
      // TLS and HTTP parsing say what they met; bounded, because a peer has a hand in it.
      return `${host}: ${String(message).slice(0, 200)}${code === undefined ? '' : ` (${code})`}`;
  }
}
