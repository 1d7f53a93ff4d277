/**
 * Owns which format a datagram is of, by its first octets and not by its port, and what is remembered of each exporter between
 * datagrams. Never throws whatever is in a datagram, never reads past the given length, keeps no reference to one.
 */
import { type DecodeCounts, FlowRecord, type RecordSink } from '../flow-record.ts';
import { DomainMemory, ExporterDomains } from './domains.ts';
import { type DecoderLimits, defaultLimits } from './limits.ts';
import { type MessageCounts, MessageDecoder } from './messages.ts';
import { decodeNetflow5, Netflow5Engines } from './netflow5.ts';
import { u16, u32 } from './octets.ts';
import { countDropped, type Reason } from './reasons.ts';
import { RecordReader } from './record-reader.ts';
import { decodeSflow, SflowAgents } from './sflow.ts';

export type FlowProtocol = 'sflow5' | 'netflow5' | 'netflow9' | 'ipfix';

export interface DecoderHoldings {
  readonly templates: number;
  readonly domains: number;
  readonly heldOctets: number;
  readonly told: MessageCounts;
}

export interface Decoder {
  /**
   * Decodes the first `length` octets of a datagram that came from the exporter with this number, at this time of a clock that never
   * goes back. `counts` are that exporter's, always the same object; the sink is called for each record, with an object that is
   * the decoder's. Returns the format, undefined if it is none that is read.
   */
  decode(
    datagram: Uint8Array,
    length: number,
    exporter: number,
    nowMs: number,
    counts: DecodeCounts,
    sink: RecordSink,
  ): FlowProtocol | undefined;
  /** Templates that are held of an exporter. */
  templates(exporter: number): number;
  /** Forgets all that is known of an exporter. */
  forget(exporter: number): void;
  /** What is held of all exporters together; `told` counts what came beside records. */
  holdings(): DecoderHoldings;
}

class ExporterMemory {
  readonly agents = new SflowAgents();
  readonly engines = new Netflow5Engines();
  readonly domains = new ExporterDomains();
}

class FlowDecoder implements Decoder {
  readonly #record = new FlowRecord();
  readonly #exporters: (ExporterMemory | undefined)[] = [];
  readonly #memory: DomainMemory;
  readonly #messages: MessageDecoder;

  constructor(limits: DecoderLimits) {
    this.#memory = new DomainMemory(limits);
    this.#messages = new MessageDecoder(this.#memory, new RecordReader(this.#record));
  }

  decode(
    datagram: Uint8Array,
    length: number,
    exporter: number,
    nowMs: number,
    counts: DecodeCounts,
    sink: RecordSink,
  ): FlowProtocol | undefined {
    counts.datagrams += 1;
    this.#memory.held.expire(nowMs);
    const memory = this.#exporters[exporter] ?? this.#remember(exporter);
    let protocol: FlowProtocol | undefined;
    let reason: Reason | undefined = 'version_unknown';
    if (length >= 4) {
      const version = u16(datagram, 0);
      if (version === 0 && u32(datagram, 0) === 5) {
        protocol = 'sflow5';
        reason = decodeSflow(datagram, length, memory.agents, this.#record, counts, sink);
      } else if (version === 5) {
        protocol = 'netflow5';
        reason = decodeNetflow5(datagram, length, memory.engines, this.#record, counts, sink);
      } else if (version === 9 || version === 10) {
        protocol = version === 9 ? 'netflow9' : 'ipfix';
        reason = this.#messages.decode(datagram, length, memory.domains, nowMs, counts, sink);
      }
    }
    if (reason !== undefined) countDropped(counts, reason);
    return protocol;
  }

  templates(exporter: number): number {
    return this.#exporters[exporter]?.domains.templates.size ?? 0;
  }

  forget(exporter: number): void {
    const memory = this.#exporters[exporter];
    if (memory !== undefined) this.#memory.forget(memory.domains);
    this.#exporters[exporter] = undefined;
  }

  holdings(): DecoderHoldings {
    return {
      templates: this.#memory.templates,
      domains: this.#memory.domains,
      heldOctets: this.#memory.held.octets,
      told: { ...this.#messages.told },
    };
  }

  #remember(exporter: number): ExporterMemory {
    const memory = new ExporterMemory();
    this.#exporters[exporter] = memory;
    return memory;
  }
}

export function createDecoder(limits: Partial<DecoderLimits> = {}): Decoder {
  return new FlowDecoder({ ...defaultLimits, ...limits });
}
