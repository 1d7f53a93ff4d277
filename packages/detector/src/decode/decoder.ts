/**
 * Owns which format a datagram is of, by its first octets and not by its port, and what is remembered of each exporter between
 * datagrams. Never throws whatever is in a datagram, never reads past the given length, keeps no reference to one.
 */
import { type DecodeCounts, FlowRecord, type RecordSink } from '../flow-record.ts';
import { decodeNetflow5, Netflow5Engines } from './netflow5.ts';
import { u16, u32 } from './octets.ts';
import { countDropped } from './reasons.ts';
import { decodeSflow, SflowAgents } from './sflow.ts';

export type FlowProtocol = 'sflow5' | 'netflow5' | 'netflow9' | 'ipfix';

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
  /** Forgets all that is known of an exporter. */
  forget(exporter: number): void;
}

class ExporterMemory {
  readonly agents = new SflowAgents();
  readonly engines = new Netflow5Engines();
}

class FlowDecoder implements Decoder {
  readonly #record = new FlowRecord();
  readonly #exporters: (ExporterMemory | undefined)[] = [];

  decode(
    datagram: Uint8Array,
    length: number,
    exporter: number,
    _nowMs: number,
    counts: DecodeCounts,
    sink: RecordSink,
  ): FlowProtocol | undefined {
    counts.datagrams += 1;
    const memory = this.#exporters[exporter] ?? this.#remember(exporter);
    if (length >= 4) {
      const version = u16(datagram, 0);
      if (version === 0 && u32(datagram, 0) === 5) {
        const reason = decodeSflow(datagram, length, memory.agents, this.#record, counts, sink);
        if (reason !== undefined) countDropped(counts, reason);
        return 'sflow5';
      }
      if (version === 5) {
        const reason = decodeNetflow5(datagram, length, memory.engines, this.#record, counts, sink);
        if (reason !== undefined) countDropped(counts, reason);
        return 'netflow5';
      }
    }
    countDropped(counts, 'version_unknown');
    return undefined;
  }

  forget(exporter: number): void {
    this.#exporters[exporter] = undefined;
  }

  #remember(exporter: number): ExporterMemory {
    const memory = new ExporterMemory();
    this.#exporters[exporter] = memory;
    return memory;
  }
}

export function createDecoder(): Decoder {
  return new FlowDecoder();
}
