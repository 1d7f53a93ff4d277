/**
 * One attempt to deliver: a POST to one of the addresses that were judged, and to nothing else. Follows no redirect, reads
 * 1 KiB of an answer at most, gives up after a while. Decides nothing about another attempt.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { failureSentence } from './failure-sentence.ts';
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

/** Of a host's: all of them are judged, no more are used. */
const MOST_ADDRESSES = 8;

/** Whether these addresses may be connected to now; asked once. */
type Admit = (addresses: readonly string[]) => boolean;

export interface SendOptions {
  readonly milliseconds?: number | undefined;
  readonly admit?: Admit;
}

/** Never throws, and is over by the deadline whatever the peer does. `signal` gives up at once. */
export async function send(
  { url, headers, body }: Message,
  judge: JudgeTarget,
  signal: AbortSignal,
  { milliseconds = ATTEMPT_MILLISECONDS, admit = () => true }: SendOptions = {},
): Promise<Attempt | 'not admitted'> {
  const deadline = AbortSignal.timeout(milliseconds);
  const over = AbortSignal.any([signal, deadline]);
  try {
    return await Promise.race([attempt({ url, headers, body }, judge, over, admit), rejectedBy(over)]);
  } catch (error) {
    const late = `no answer within ${milliseconds / 1000} s`;
    return { delivered: false, error: deadline.aborted ? late : failureSentence(url, error) };
  }
}

async function attempt(
  { url, headers, body }: Message,
  judge: JudgeTarget,
  signal: AbortSignal,
  admit: Admit,
): Promise<Attempt | 'not admitted'> {
  const target = await judge(url);
  if (!target.ok) return { delivered: false, error: target.sentence };
  const addresses = target.addresses.slice(0, MOST_ADDRESSES);
  if (signal.aborted) throw signal.reason;
  if (!admit(addresses)) return 'not admitted';
  const bytes = Buffer.from(body);
  const response = await exchange(url, bytes, {
    method: 'POST',
    // No connection is kept: the next attempt is judged anew.
    agent: false,
    headers: { ...headers, 'content-length': bytes.length },
    signal,
    lookup: onlyTo(addresses),
  });
  return judgeAnswer(response);
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
    // Some ends come without an error: what counts is that each of them is told.
    request.on('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
    // Without this listener Node closes the connection and says nothing (101 Switching Protocols).
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response);
    });
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
  const error = `answered with status ${status}${hintOf(status)}`;
  return { delivered: false, status, error, retryAfterSeconds: seconds };
}

function hintOf(status: number): string {
  if (status === 101) return ': no other protocol than HTTP is spoken';
  return status >= 300 && status < 400 ? ': redirects are not followed' : '';
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
