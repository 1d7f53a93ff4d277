/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): brings every connected client from
 * the event that it has to the present, and keeps it there. New events are read once for all of them. A client that does
 * not read is dropped: it comes back with the id that it has. Costs nothing while no stream is open.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type pg from 'pg';
import { untilDrained } from '../agents/until-drained.ts';
import { liveKeys } from './live-keys.ts';
import {
  type EventPage,
  type EventPlace,
  type EventScope,
  eventIdOf,
  mayBeTold,
  readEvents,
  readHead,
} from './read-events.ts';

export interface StreamRequest {
  readonly keyUuid: string;
  readonly scope: EventScope;
  /** Absent: all. */
  readonly names?: ReadonlySet<string> | undefined;
  /** Absent: from now on. */
  readonly after?: EventPlace | undefined;
}

/** `headers`: those that every answer carries. */
export type TakeOver = (response: ServerResponse, headers: OutgoingHttpHeaders) => void;

export interface EventStreams {
  readonly open: number;
  /**
   * Makes ready what needs the database, so that a failure can still be answered. The function that it gives takes the
   * response over, and must be called once; when the head was sent by others, it only gives the place back. Undefined: the
   * key holds as many streams here as it may; one that is being opened counts.
   */
  prepare(request: StreamRequest): Promise<TakeOver> | undefined;
  /** New events may be there. */
  wake(): void;
  stop(): void;
}

export interface StreamsOptions {
  readonly heartbeatMilliseconds?: number;
  /** A client that takes nothing for so long is dropped. */
  readonly stalledMilliseconds?: number;
  readonly log?: (message: string) => void;
}

export const STREAMS_OF_A_KEY = 8;
const HEARTBEAT_MILLISECONDS = 15_000;
const STALLED_MILLISECONDS = 15_000;
/** Revoked keys stop within a second; also how late an event is whose notice was lost. */
const TICK_MILLISECONDS = 500;
/** What may wait for one client before it is dropped. */
const BACKLOG_BYTES = 1024 * 1024;
const PAGE = 500;
/** Clients come back after this. */
const RETRY_MILLISECONDS = 2_000;

interface Stream {
  readonly request: StreamRequest;
  readonly response: ServerResponse;
  /** The last event that it was sent or that was passed over for it. */
  sequence: number;
  /** Until then it reads pages of its own. */
  caughtUp: boolean;
  stalledSince: number | undefined;
  heardAt: number;
}

export function createEventStreams(pool: Pick<pg.Pool, 'query'>, options: StreamsOptions = {}): EventStreams {
  return new Streams(pool, options);
}

class Streams implements EventStreams {
  readonly #pool: Pick<pg.Pool, 'query'>;
  readonly #options: StreamsOptions;
  readonly #streams = new Set<Stream>();
  /** Key → streams that it holds or is opening. */
  readonly #held = new Map<string, number>();
  /** Events up to here were handed to all that had caught up. Undefined: no stream is open. */
  #head: EventPlace | undefined;
  #reading = false;
  #readAgain = false;
  #ticking: NodeJS.Timeout | undefined;
  #judging = false;
  #stopped = false;
  readonly #heartbeatMilliseconds: number;

  constructor(pool: Pick<pg.Pool, 'query'>, options: StreamsOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#heartbeatMilliseconds = options.heartbeatMilliseconds ?? HEARTBEAT_MILLISECONDS;
  }

  get open(): number {
    return this.#streams.size;
  }

  prepare(request: StreamRequest): Promise<TakeOver> | undefined {
    const held = this.#held.get(request.keyUuid) ?? 0;
    if (held >= STREAMS_OF_A_KEY) return undefined;
    // Before anything is waited for: requests at the same time must see each other.
    this.#held.set(request.keyUuid, held + 1);
    return this.#takeOver(request).catch((error: unknown) => {
      this.#release(request);
      throw error;
    });
  }

  async #takeOver(request: StreamRequest): Promise<TakeOver> {
    // Read anew for each: what was committed before it was asked for is not "from now on".
    const present = await readHead(this.#pool);
    return (response: ServerResponse, headers: OutgoingHttpHeaders) => {
      if (response.headersSent) return this.#release(request);
      response.writeHead(200, { ...headers, 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
      // A client that is gone already closes no more.
      if (response.req.method !== 'HEAD' && !this.#stopped && !response.destroyed) {
        return this.#begin(request, response, present);
      }
      this.#release(request);
      response.end();
    };
  }

  #release({ keyUuid }: StreamRequest): void {
    const held = (this.#held.get(keyUuid) ?? 0) - 1;
    if (held > 0) this.#held.set(keyUuid, held);
    else this.#held.delete(keyUuid);
  }

  wake(): void {
    if (this.#head === undefined) return;
    if (this.#reading) {
      this.#readAgain = true;
      return;
    }
    this.#reading = true;
    this.#read()
      .catch((error: Error) => this.#options.log?.(`events cannot be read: ${error.message}`))
      .finally(() => {
        this.#reading = false;
        if (this.#readAgain) this.wake();
      });
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#ticking);
    for (const { response } of this.#streams) response.end();
  }

  #begin(request: StreamRequest, response: ServerResponse, present: EventPlace): void {
    const stream: Stream = {
      request,
      response,
      sequence: (request.after ?? present).sequence,
      caughtUp: false,
      stalledSince: undefined,
      heardAt: Date.now(),
    };
    this.#streams.add(stream);
    this.#head ??= present;
    this.#ticking ??= setInterval(() => this.#tick(), Math.min(TICK_MILLISECONDS, this.#heartbeatMilliseconds));
    response.socket?.setNoDelay(true);
    response.on('error', () => {});
    response.on('drain', () => {
      stream.stalledSince = undefined;
    });
    response.on('close', () => {
      this.#streams.delete(stream);
      this.#release(request);
      if (this.#streams.size > 0) return;
      clearInterval(this.#ticking);
      this.#ticking = undefined;
      this.#head = undefined;
    });
    this.#write(stream, `retry: ${RETRY_MILLISECONDS}\n\n`);
    this.#catchUp(stream, present).catch((error: Error) => {
      this.#options.log?.(`an event stream ended: ${error.message}`);
      response.destroy();
    });
  }

  /** Pages of its own, until it stands where all stand. */
  async #catchUp(stream: Stream, present: EventPlace): Promise<void> {
    const { request, response } = stream;
    const names = request.names === undefined ? undefined : [...request.names];
    const { after } = request;
    let { epoch } = after ?? present;
    if (after?.epoch === present.epoch && stream.sequence > present.sequence) epoch = 'none';
    for (let first = true; !response.destroyed; first = false) {
      const head = this.#head;
      const page = await readEvents(this.#pool, { after: stream.sequence, limit: PAGE, scope: request.scope, names });
      if (page.epoch !== undefined && epoch !== undefined && page.epoch !== epoch) {
        // Where it stands means nothing here.
        const now = await readHead(this.#pool);
        stream.sequence = now.sequence;
        this.#write(stream, gapMessage(page.epoch, now.sequence));
        epoch = now.epoch;
        continue;
      }
      epoch = page.epoch;
      if (first && epoch !== undefined) {
        const isGap = after?.epoch !== undefined && after.sequence < page.floor;
        // With the id a client that is cut off before its first event misses none.
        const id = eventIdOf(epoch, Math.max(stream.sequence, page.floor));
        this.#write(stream, isGap ? gapMessage(epoch, page.floor) : `id: ${id}\n\n`);
      }
      await this.#writeWhole(stream, this.#messages(stream, page));
      if (page.events.length === PAGE || response.destroyed) continue;
      // All up to where the others stood when the page was read has been read.
      if (head !== undefined && head.sequence > stream.sequence) stream.sequence = head.sequence;
      if (head === this.#head) {
        stream.caughtUp = true;
        return;
      }
    }
  }

  /** Moves the stream on behind them. */
  #messages(stream: Stream, { epoch, events }: EventPage): string {
    let text = '';
    for (const event of events) {
      if (event.sequence <= stream.sequence) continue;
      stream.sequence = event.sequence;
      const { scope, names } = stream.request;
      if (!mayBeTold(scope, event) || (names !== undefined && !names.has(event.name))) continue;
      text += `id: ${eventIdOf(epoch ?? '', event.sequence)}\nevent: ${event.name}\ndata: ${event.text}\n\n`;
    }
    return text;
  }

  async #read(): Promise<void> {
    this.#readAgain = false;
    while (this.#head !== undefined) {
      const before = this.#head;
      const page = await readEvents(this.#pool, { after: before.sequence, limit: PAGE });
      if (this.#head !== before) return;
      if (page.epoch !== before.epoch) {
        await this.#renew(before);
        continue;
      }
      const last = page.events.at(-1);
      if (last === undefined) return;
      this.#head = { epoch: page.epoch, sequence: last.sequence };
      for (const stream of this.#streams) {
        const text = stream.caughtUp ? this.#messages(stream, page) : '';
        if (text !== '') this.#write(stream, text);
      }
      if (page.events.length < PAGE) return;
    }
  }

  /** Entries of the change log were missed, or another database answers. */
  async #renew(before: EventPlace): Promise<void> {
    const now = await readHead(this.#pool);
    if (this.#head !== before) return;
    this.#head = now;
    for (const stream of this.#streams) {
      if (!stream.caughtUp) continue;
      stream.sequence = now.sequence;
      if (now.epoch !== undefined && before.epoch !== undefined)
        this.#write(stream, gapMessage(now.epoch, now.sequence));
    }
  }

  #write(stream: Stream, text: string): boolean {
    const { response } = stream;
    if (response.destroyed || response.writableEnded) return false;
    if (response.writableLength > BACKLOG_BYTES) {
      response.destroy();
      return false;
    }
    stream.heardAt = Date.now();
    const taken = response.write(text);
    if (!taken) stream.stalledSince ??= Date.now();
    return taken;
  }

  /** Waits until the client has taken the page, so that a long way back needs the memory of one. */
  async #writeWhole(stream: Stream, text: string): Promise<void> {
    const { response } = stream;
    if (text === '' || this.#write(stream, text) || response.destroyed) return;
    await untilDrained(response);
  }

  #tick(): void {
    const now = Date.now();
    const stalledBefore = now - (this.#options.stalledMilliseconds ?? STALLED_MILLISECONDS);
    for (const stream of this.#streams) {
      if (stream.stalledSince !== undefined && stream.stalledSince < stalledBefore) stream.response.destroy();
      else if (stream.caughtUp && now - stream.heardAt >= this.#heartbeatMilliseconds) this.#beat(stream);
    }
    this.wake();
    void this.#endRevoked();
  }

  /** The id moves on with what is passed over for the client: it shall not fall out of what is kept. */
  #beat(stream: Stream): void {
    const { epoch, sequence } = this.#head ?? {};
    stream.sequence = Math.max(stream.sequence, sequence ?? 0);
    this.#write(stream, epoch === undefined ? ': \n\n' : `: \nid: ${eventIdOf(epoch, stream.sequence)}\n\n`);
  }

  async #endRevoked(): Promise<void> {
    if (this.#judging) return;
    this.#judging = true;
    try {
      const keys = new Set([...this.#streams].map(({ request }) => request.keyUuid));
      const live = await liveKeys(this.#pool, [...keys]);
      for (const { request, response } of this.#streams) {
        if (keys.has(request.keyUuid) && !live.has(request.keyUuid)) response.end();
      }
    } catch {
      // The database is away: nothing is sent either.
    } finally {
      this.#judging = false;
    }
  }
}

function gapMessage(epoch: string, sequence: number): string {
  const message =
    'Events that were not sent here are no longer kept, or were missed by the service. Read the present state; what follows is complete from here on.';
  const id = eventIdOf(epoch, sequence);
  return `id: ${id}\nevent: gap\ndata: ${JSON.stringify({ id, type: 'gap', message })}\n\n`;
}
