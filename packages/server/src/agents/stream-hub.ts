/**
 * Brings every connected router from the cursor that it has to the present, and keeps it there. A change is written as
 * one line for all of them, but to routers that have one of its tunnels. A router that does not read is dropped: it comes
 * back with its cursor. Never answers for what a router has applied; that comes by its reports.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type ChangesSince, changesSince, readHorizon } from '../store/change-log.ts';
import type { Changes, ChangeTail } from '../store/change-tail.ts';
import { type Cursor, compareCursors, formatCursor } from '../store/cursor.ts';
import { readPresentTunnels } from '../store/present-tunnels.ts';
import { openSnapshot } from '../store/snapshot.ts';
import type { KnownRouter } from './router-registry.ts';
import {
  chunkLine,
  heartbeatLine,
  helloLine,
  type SharedChange,
  sharedChange,
  snapshotBeginLine,
  snapshotEndLine,
} from './stream-lines.ts';
import { untilDrained } from './until-drained.ts';
import type { WireCursors } from './wire-cursor.ts';

export interface StreamHub {
  readonly streams: number;
  /** Takes the response over, headers unsent. `after` undefined: the router has nothing. */
  open(response: ServerResponse, router: KnownRouter, after: Cursor | undefined): void;
  stop(): void;
}

export interface HubOptions {
  readonly heartbeatSeconds: number;
  /** Rules, filters or tunnels. */
  readonly objectsPerLine: number;
  readonly cursors: WireCursors;
  readonly stalledMilliseconds?: number;
  /** False ends the stream: the router is gone or has another key. */
  readonly mayRead: (router: KnownRouter) => boolean;
  readonly log?: (message: string) => void;
}

/** What may wait for one router before it is dropped. Two of the longest lines fit; lines are shared by all streams. */
const BACKLOG_BYTES = 64 * 1024 * 1024;
/** A router that takes nothing for so long is dropped. */
const STALLED_MILLISECONDS = 15_000;
/** Beyond this many entries a snapshot is the shorter way. */
const CATCH_UP_ENTRIES = 50_000;
const CATCH_UP_BATCH = 5_000;
/** Agents refuse lines of 64 MiB: whoever would need a longer one gets a snapshot. */
const LONGEST_LINE_BYTES = 32 * 1024 * 1024;
/** Each holds a connection and a transaction while it is sent. */
const SNAPSHOTS_AT_ONCE = 4;

interface CaughtUp {
  readonly changes: ChangesSince;
  readonly shared: SharedChange;
}

interface Stream {
  readonly response: ServerResponse;
  readonly router: KnownRouter;
  leave: (() => void) | undefined;
  /** Since when the socket has not taken all that was written. */
  stalledSince: number | undefined;
}

export function createStreamHub(pool: pg.Pool, tail: ChangeTail, options: HubOptions): StreamHub {
  return new Hub(pool, tail, options);
}

class Hub implements StreamHub {
  readonly #pool: pg.Pool;
  readonly #tail: ChangeTail;
  readonly #options: HubOptions;
  readonly #open = new Set<Stream>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #snapshotQueue: (() => void)[] = [];
  #snapshots = 0;
  readonly #catchingUp = new Map<string, Promise<CaughtUp>>();
  #last: { changes: Changes; shared: SharedChange } | undefined;

  constructor(pool: pg.Pool, tail: ChangeTail, options: HubOptions) {
    this.#pool = pool;
    this.#tail = tail;
    this.#options = options;
    this.#heartbeat = setInterval(() => this.#beat(), options.heartbeatSeconds * 1000);
  }

  get streams(): number {
    return this.#open.size;
  }

  open(response: ServerResponse, router: KnownRouter, after: Cursor | undefined): void {
    const stream: Stream = { response, router, leave: undefined, stalledSince: undefined };
    // Ends with the connection: no chunk framing, one write a line. Lines frame themselves.
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    response.socket?.setNoDelay(true);
    this.#open.add(stream);
    response.on('close', () => {
      this.#open.delete(stream);
      stream.leave?.();
    });
    response.on('error', () => {});
    response.on('drain', () => {
      stream.stalledSince = undefined;
    });
    const { uuid, name, location } = router;
    this.#write(stream, helloLine({ uuid, name, location }, this.#options.heartbeatSeconds));
    this.#bring(stream, after).catch((error: Error) => {
      this.#options.log?.(`the stream of router ${name} ended: ${error.message}`);
      response.destroy();
    });
  }

  stop(): void {
    clearInterval(this.#heartbeat);
    for (const stream of this.#open) stream.response.destroy();
  }

  /** From wherever the router stands to the tail. */
  async #bring(stream: Stream, after: Cursor | undefined): Promise<void> {
    let cursor = after;
    let caughtUp = 0;
    while (!stream.response.destroyed) {
      if (cursor === undefined) {
        cursor = await this.#sendSnapshot(stream);
        caughtUp = 0;
        continue;
      }
      const joined = await this.#tail.join(cursor, {
        routerUuid: stream.router.uuid,
        changes: (changes) => this.#send(stream, changes),
        gap: () => void stream.response.destroy(),
      });
      if (joined !== false) {
        if (stream.response.destroyed) joined();
        else stream.leave = joined;
        return;
      }
      const { next, floor } = await readHorizon(this.#pool);
      if (compareCursors(cursor, floor) < 0 || compareCursors(cursor, next) > 0 || caughtUp > CATCH_UP_ENTRIES) {
        cursor = undefined;
        continue;
      }
      const { changes, shared } = await this.#catchUp(cursor);
      const { uuid } = stream.router;
      const own = (await readPresentTunnels(this.#pool, [...changes.tunnels], [uuid])).get(uuid);
      const line = own === undefined ? shared.line : shared.lineWith(own);
      if (line.length > LONGEST_LINE_BYTES) {
        cursor = undefined;
        continue;
      }
      if (changes.entries.length === 0) await delay(50);
      else await this.#writeWhole(stream, line);
      caughtUp += changes.entries.length;
      cursor = changes.cursor;
    }
  }

  /** Routers that come back together mostly stand at the same place. */
  #catchUp(cursor: Cursor): Promise<CaughtUp> {
    const key = formatCursor(cursor);
    const present = this.#catchingUp.get(key);
    if (present !== undefined) return present;
    const reading = changesSince(this.#pool, cursor, CATCH_UP_BATCH)
      .then((changes) => ({ changes, shared: sharedChange(changes, this.#options.cursors.write(changes.cursor)) }))
      .finally(() => this.#catchingUp.delete(key));
    this.#catchingUp.set(key, reading);
    return reading;
  }

  async #sendSnapshot(stream: Stream): Promise<Cursor | undefined> {
    await this.#snapshotTurn();
    try {
      if (stream.response.destroyed) return undefined;
      const snapshot = await openSnapshot(this.#pool, this.#options.objectsPerLine, stream.router.uuid);
      try {
        await this.#writeWhole(stream, snapshotBeginLine);
        for (;;) {
          const chunk = await snapshot.next();
          if (stream.response.destroyed) return undefined;
          if (chunk === undefined) break;
          await this.#writeWhole(stream, chunkLine(chunk));
        }
      } finally {
        await snapshot.close();
      }
      await this.#writeWhole(stream, snapshotEndLine(this.#options.cursors.write(snapshot.cursor)));
      return snapshot.cursor;
    } finally {
      this.#snapshots--;
      this.#snapshotQueue.shift()?.();
    }
  }

  async #snapshotTurn(): Promise<void> {
    while (this.#snapshots >= SNAPSHOTS_AT_ONCE) {
      await new Promise<void>((resolve) => this.#snapshotQueue.push(resolve));
    }
    this.#snapshots++;
  }

  #send(stream: Stream, changes: Changes): void {
    if (this.#last?.changes !== changes) {
      this.#last = { changes, shared: sharedChange(changes, this.#options.cursors.write(changes.cursor)) };
    }
    const own = changes.ends.get(stream.router.uuid);
    const line = own === undefined ? this.#last.shared.line : this.#last.shared.lineWith(own);
    if (line.length > LONGEST_LINE_BYTES) {
      // Its cursor is before this change: coming back, it is offered the same line and gets a snapshot instead.
      stream.response.destroy();
      return;
    }
    this.#write(stream, line);
  }

  #write(stream: Stream, line: Buffer): boolean {
    const { response } = stream;
    if (response.destroyed) return false;
    if (response.writableLength > BACKLOG_BYTES) {
      response.destroy();
      return false;
    }
    const taken = response.write(line);
    if (!taken) stream.stalledSince ??= Date.now();
    return taken;
  }

  /** Waits until the socket has taken the line, so that a long answer needs the memory of one line. */
  async #writeWhole(stream: Stream, line: Buffer): Promise<void> {
    const { response } = stream;
    if (this.#write(stream, line) || response.destroyed) return;
    await untilDrained(response);
  }

  #beat(): void {
    const stalledBefore = Date.now() - (this.#options.stalledMilliseconds ?? STALLED_MILLISECONDS);
    for (const stream of this.#open) {
      if (!this.#options.mayRead(stream.router)) stream.response.destroy();
      else if (stream.stalledSince !== undefined && stream.stalledSince < stalledBefore) {
        this.#options.log?.(`router ${stream.router.name} does not read its stream: dropped, it resumes by its cursor`);
        stream.response.destroy();
      } else if (stream.stalledSince === undefined) this.#write(stream, heartbeatLine);
    }
  }
}
