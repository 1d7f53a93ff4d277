/**
 * Owns what one worker does with datagrams and messages, whatever brings them: from a datagram to a slot's report, on one thread. Never
 * touches a socket, never reads a clock.
 */
import { Aggregator } from '../aggregate/aggregator.ts';
import { LONGEST_SPREAD_SLOTS } from '../aggregate/spread.ts';
import { type FromCollector, SLOT_MILLISECONDS, type ToCollector } from '../bus/port.ts';
import { createDecoder, type Decoder } from '../decode/decoder.ts';
import type { FlowRecord } from '../flow-record.ts';
import { ExporterTable } from './exporter-table.ts';

export interface CollectingOptions {
  /** The name that reports bear. */
  readonly collector: string;
  readonly sampleOctets: number;
  readonly send: (message: FromCollector) => void;
  /** What the worker's sockets say. */
  readonly sockets: () => {
    readonly receiveBuffer: { readonly bytes: number; readonly wanted: number };
    readonly kernelDrops: number;
  };
  /** Exporters' sources that are no address. */
  readonly unreadable?: (sources: readonly string[]) => void;
  readonly random?: () => number;
}

const statusMilliseconds = 1_000;
/** After a pause, a minute is told slot by slot. */
const mostSlotsAtOnce = 240;

export class Collecting {
  readonly #options: CollectingOptions;
  readonly #decoder: Decoder = createDecoder();
  readonly #exporters = new ExporterTable((number) => this.#decoder.forget(number));
  readonly #aggregator: Aggregator;
  readonly #nameOf = (number: number): string => this.#exporters.nameOf(number);
  #slotMs = 0;
  #sequence = 0;
  #nextStatusMs = 0;
  #settingsRevision = 0;
  /** Slots that began before are not known wholly. */
  #wholeFromMs = 0;
  /** Sampled packets that waited nobody knows since when. */
  #misplaced = 0;
  /** What is read tells of exporters and their templates, but of no slot: it is not known when it came. */
  countsNothing = false;

  constructor(options: CollectingOptions) {
    this.#options = options;
    const { sampleOctets, random } = options;
    this.#aggregator = new Aggregator(random === undefined ? { sampleOctets } : { sampleOctets, random });
  }

  /** When the slot that is going on ends, by the wall clock. */
  get slotEndMs(): number {
    return this.#slotMs + SLOT_MILLISECONDS;
  }

  hear(message: ToCollector): void {
    switch (message.type) {
      case 'settings': {
        this.#settingsRevision = message.settings.revision;
        this.#aggregator.protect(message.settings.prefixes);
        const unreadable = this.#exporters.configure(message.settings.exporters);
        if (unreadable.length > 0) this.#options.unreadable?.(unreadable);
        return;
      }
      case 'hot':
        this.#aggregator.setHot(message.detector, message.destinations);
        return;
      case 'samples_wanted': {
        const { request, dst, sinceMs, most } = message;
        const found = this.#aggregator.collectSamples(dst, sinceMs, most, this.#nameOf);
        this.#options.send({ type: 'samples', collector: this.#options.collector, request, ...found });
      }
    }
  }

  /** The time is that of the last `tick`. `steadyMs`: of a clock that never goes back. */
  datagram(
    octets: Uint8Array,
    length: number,
    family: 4 | 6,
    a: number,
    b: number,
    c: number,
    d: number,
    steadyMs: number,
  ): void {
    const exporter = this.#exporters.exporterOf(family, a, b, c, d, this.#aggregator.nowMs);
    if (exporter === undefined) return;
    this.#aggregator.origin = exporter;
    const { number, counts, protocols } = exporter;
    const protocol = this.#decoder.decode(
      octets,
      length,
      number,
      steadyMs,
      counts,
      this.countsNothing ? this.#misplace : this.#aggregator.record,
    );
    if (protocol !== undefined && !protocols.has(protocol)) protocols.add(protocol);
  }

  /** The receiver stood still up to now: the kernel may have thrown away what came meanwhile. */
  stood(nowMs: number): void {
    this.#wholeFromMs = nowMs;
  }

  /** The wall clock was set by so much: no time has passed, the slot that goes on has another name. */
  stepped(milliseconds: number): void {
    const whole = Math.round(milliseconds / SLOT_MILLISECONDS) * SLOT_MILLISECONDS;
    this.#slotMs += whole;
    this.#nextStatusMs += whole;
    this.#wholeFromMs += whole;
    this.#aggregator.nowMs += whole;
  }

  /** To be called before datagrams of the same moment, and at least as often as slots end. Sends what is over by now. */
  tick(nowMs: number): void {
    const slotMs = nowMs - (nowMs % SLOT_MILLISECONDS);
    if (this.#slotMs === 0) this.#slotMs = slotMs;
    if (slotMs !== this.#slotMs) this.#endSlots(slotMs);
    this.#aggregator.nowMs = nowMs;
    if (nowMs < this.#nextStatusMs && nowMs > this.#nextStatusMs - 2 * statusMilliseconds) return;
    this.#nextStatusMs = nowMs + statusMilliseconds;
    this.#sendStatus();
  }

  /** The slot that is going on, and where the thread or the machine stood still, those in between: flows have a rate in them. */
  #endSlots(slotMs: number): void {
    const passed = (slotMs - this.#slotMs) / SLOT_MILLISECONDS;
    const slots = Math.min(Math.max(1, passed), mostSlotsAtOnce);
    const { collector, send } = this.#options;
    for (let i = 0; i < slots; i++) {
      const at = this.#slotMs + i * SLOT_MILLISECONDS;
      const report = this.#aggregator.endSlot(at, collector, this.#sequence++, this.#nameOf);
      send(at < this.#wholeFromMs ? { ...report, isPartial: true } : report);
    }
    this.#aggregator.skip(Math.min(Math.max(1, passed), LONGEST_SPREAD_SLOTS + 1) - slots);
    this.#slotMs = slotMs;
  }

  readonly #misplace = ({ packets }: FlowRecord): void => {
    this.#misplaced += packets;
  };

  #sendStatus(): void {
    this.#exporters.second();
    const { collector, send, sockets } = this.#options;
    const { samples, ...overflow } = this.#aggregator.overflow;
    send({
      type: 'status',
      collector,
      settingsRevision: this.#settingsRevision,
      exporters: this.#exporters.status((number) => this.#decoder.templates(number)),
      ...sockets(),
      overflow: {
        unknownDatagrams: this.#exporters.otherUnknownDatagrams,
        samples: samples + this.#misplaced,
        ...overflow,
      },
    });
  }
}
