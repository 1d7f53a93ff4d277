/**
 * One TCP connection: messages with their length in front (RFC 1035, 4.2.2), answered in order, as many as come (RFC
 * 7766). Owns what waits to be read and written; both are bounded. Never closes for being idle: its listener does.
 */
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Reply } from './answer.ts';
import type { DnsCounters } from './counters.ts';
import { transferMessages } from './transfer.ts';

export interface ConnectionOptions {
  readonly counters: DnsCounters;
  /** Never throws. */
  readonly answer: (message: Uint8Array) => Reply;
  readonly transferred: (zoneName: string, serial: number) => void;
}

/** Answers that the client has not taken: beyond it nothing more is read. */
const backlogBytes = 128 * 1024;

export class TcpConnection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #received: Buffer = Buffer.alloc(0);
  #ended = false;
  /** When it last got somewhere: a whole message, or a part of a transfer taken. */
  lastProgress = performance.now();
  transferring = false;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#work();
    });
    socket.on('drain', () => this.#work());
    // A client may send its queries, close its side, and read the answers.
    socket.on('end', () => {
      this.#ended = true;
      this.#work();
    });
    socket.on('error', () => {});
  }

  cut(): void {
    this.#socket.destroy();
  }

  #work(): void {
    const socket = this.#socket;
    while (!this.transferring && !socket.destroyed) {
      if (socket.writableLength > backlogBytes) {
        socket.pause();
        return;
      }
      const message = this.#nextMessage();
      if (message === undefined) {
        if (this.#ended) socket.end();
        else socket.resume();
        return;
      }
      this.#handle(message);
    }
  }

  #nextMessage(): Buffer | undefined {
    const received = this.#received;
    if (received.length < 2) return undefined;
    const end = 2 + received.readUInt16BE(0);
    if (received.length < end) return undefined;
    this.#received = received.subarray(end);
    return received.subarray(2, end);
  }

  #handle(message: Buffer): void {
    const { counters, answer } = this.#options;
    counters.queries.tcp += 1;
    this.lastProgress = performance.now();
    const reply = answer(message);
    if (reply.kind === 'none') {
      // Whoever sends that here speaks no DNS, and where its next message begins is anybody's guess.
      this.#socket.destroy();
    } else if (reply.kind === 'transfer') {
      this.transferring = true;
      this.#socket.pause();
      this.#transfer(reply).finally(() => {
        this.transferring = false;
        this.#work();
      });
    } else {
      this.#write(reply.octets);
    }
  }

  async #transfer(reply: Reply & { kind: 'transfer' }): Promise<void> {
    const { counters, transferred } = this.#options;
    const { name, serial } = reply.zone.settings;
    for (const message of transferMessages(reply.query, reply.question, reply.zone)) {
      if (!this.#write(message)) await this.#drained();
      // Everyone else has a turn between two messages: the system takes megabytes at once.
      await nextTurn();
      if (this.#socket.destroyed) {
        counters.transfers.broken += 1;
        return;
      }
      this.lastProgress = performance.now();
    }
    counters.transfers.complete += 1;
    transferred(name, serial);
  }

  /** False: wait until it is drained. */
  #write(octets: Buffer): boolean {
    const framed = Buffer.allocUnsafe(2 + octets.length);
    framed.writeUInt16BE(octets.length, 0);
    framed.set(octets, 2);
    return this.#socket.write(framed);
  }

  #drained(): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve) => {
      const done = () => {
        socket.off('drain', done);
        socket.off('close', done);
        resolve();
      };
      socket.on('drain', done);
      socket.on('close', done);
      if (socket.destroyed) done();
    });
  }
}
