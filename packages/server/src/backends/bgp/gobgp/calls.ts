/**
 * Calls to GoBGP over gRPC: octets in, octets out, with a deadline, and failures told apart into those of the connection
 * and those of the request. Knows no message.
 */
import { Client, type ClientOptions, credentials, type ServiceError, status } from '@grpc/grpc-js';

export interface CallFailure {
  readonly ok: false;
  readonly kind: 'away' | 'refused' | 'unknown_method';
  /** A part of a sentence: GoBGP's words of a request, ours of a connection. */
  readonly message: string;
}

export type CallResult = { readonly ok: true; readonly answers: readonly Uint8Array[] } | CallFailure;

export interface Calls {
  /** One request, one answer. */
  ask(path: string, request: Uint8Array): Promise<CallResult>;
  /** One request, as many answers as come. */
  list(path: string, request: Uint8Array): Promise<CallResult>;
  /** A stream of one request, one answer. */
  send(path: string, request: Uint8Array): Promise<CallResult>;
  /** Until `close`, or until the other end goes, which `ended` says. */
  watch(path: string, request: Uint8Array, heard: (answer: Uint8Array) => void, ended: (why: string) => void): void;
  close(): void;
}

const answerMilliseconds = 10_000;
const listMilliseconds = 60_000;
/** GoBGP hands out a list one route a message, but takes and gives whole batches. */
const largestMessage = 64 * 1024 * 1024;

const away = new Set([status.UNAVAILABLE, status.CANCELLED, status.DEADLINE_EXCEEDED]);

/** `target`: `unix:///path` or `host:port`. Nothing is sent yet. */
export function openCalls(target: string): Calls {
  // No pings: gobgpd ends connections that ask for signs of life more than once in five minutes.
  const options: ClientOptions = {
    'grpc.max_receive_message_length': largestMessage,
    // Each has its own connection: one that was lost is not waited for, another is made.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
  };
  const client = new Client(target, credentials.createInsecure(), options);
  const within = (milliseconds: number) => ({ deadline: Date.now() + milliseconds });
  const settle = (resolve: (result: CallResult) => void) => (error: ServiceError | null, answer?: Uint8Array) =>
    resolve(error === null ? { ok: true, answers: answer === undefined ? [] : [answer] } : failureOf(error));
  return {
    ask: (path, request) =>
      new Promise((resolve) => {
        client.makeUnaryRequest(path, asBuffer, asOctets, request, within(answerMilliseconds), settle(resolve));
      }),
    send: (path, request) =>
      new Promise((resolve) => {
        const call = client.makeClientStreamRequest(
          path,
          asBuffer,
          asOctets,
          within(listMilliseconds),
          settle(resolve),
        );
        call.write(request);
        call.end();
      }),
    list: (path, request) =>
      new Promise((resolve) => {
        const answers: Uint8Array[] = [];
        const call = client.makeServerStreamRequest(path, asBuffer, asOctets, request, within(listMilliseconds));
        call.on('data', (answer: Uint8Array) => void answers.push(answer));
        call.on('error', (error: ServiceError) => resolve(failureOf(error)));
        call.on('end', () => resolve({ ok: true, answers }));
      }),
    watch(path, request, heard, ended) {
      const call = client.makeServerStreamRequest(path, asBuffer, asOctets, request);
      call.on('data', heard);
      call.on('error', (error: ServiceError) => ended(failureOf(error).message));
      call.on('end', () => ended('it ended the stream of events'));
    },
    close: () => client.close(),
  };
}

function asBuffer(octets: Uint8Array): Buffer {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength);
}

function asOctets(buffer: Buffer): Uint8Array {
  return buffer;
}

function failureOf({ code, details }: ServiceError): CallFailure {
  if (code === status.UNIMPLEMENTED) return { ok: false, kind: 'unknown_method', message: details };
  if (!away.has(code)) return { ok: false, kind: 'refused', message: details };
  return { ok: false, kind: 'away', message: wordsOf(code, details) };
}

/** Without paths and addresses: customers read it. */
function wordsOf(code: status, details: string): string {
  if (code === status.DEADLINE_EXCEEDED) return 'it does not answer in time';
  if (details.includes('ENOENT')) return 'its socket does not exist';
  if (details.includes('ECONNREFUSED')) return 'nothing listens there';
  if (details.includes('EACCES')) return 'its socket may not be opened';
  return 'the connection is lost';
}
