/**
 * Owns the reading of one record by its template's steps. Keeps nothing from one record to the next, allocates nothing, and
 * relies on its caller that the record is whole. Long, as the loop over steps and the fields that it fills are one thing.
 */
import { MOST_SAMPLING_RATE } from '@levee/contract/detector.ts';
import { LONGEST_PACKET } from '@levee/core/detection/bounds.ts';
import type { FlowRecord } from '../flow-record.ts';
import { u8, u16, u32, uint } from './octets.ts';
import { ETHERNET, IP, readPacket } from './packet.ts';
import type { Reason } from './reasons.ts';
import { type Template, VARIABLE } from './template.ts';

const NTP_FRACTION = 1000 / 0x1_0000_0000;

export class RecordReader {
  readonly record: FlowRecord;
  selector = -1;
  selection = -1;
  readonly selectors: number[] = [];
  algorithm = 0;
  domain = 0;
  template = 0;
  /** Whether the last record's template had any of what follows. */
  #hasRare = true;
  #ipTotalLength = 0;
  #icmpType = -1;
  #icmpCode = 0;
  #fragmentOffset = 0;
  #fragmentFlags = 0;
  #start = 0;
  #end = 0;
  #oneIn = 0;
  #sampledRun = 0;
  #skippedRun = -1;
  #sampleSize = 0;
  #population = 0;
  #probability = 0;
  #sectionAt = -1;
  #sectionLength = 0;
  #sectionLayer = IP;
  #sectionOctets = 0;
  #frameSize = 0;
  readonly #floats = new DataView(new ArrayBuffer(8));
  #variableSteps = new Int32Array(3 * 16);

  constructor(record: FlowRecord) {
    this.record = record;
  }

  /**
   * Measures a record of a template with fields of variable length, and notes their places. Returns its octets; -1 if it
   * goes past `end`.
   */
  measure(template: Template, data: Uint8Array, start: number, end: number): number {
    const fields = template.steps;
    if (this.#variableSteps.length < fields.length) this.#variableSteps = new Int32Array(fields.length);
    const steps = this.#variableSteps;
    let at = start;
    for (let field = 0; field < fields.length; field += 3) {
      let length = fields[field + 2] as number;
      if (length === VARIABLE) {
        if (at >= end) return -1;
        length = u8(data, at);
        at += 1;
        if (length === 255) {
          if (end - at < 2) return -1;
          length = u16(data, at);
          at += 2;
        }
      }
      if (length > end - at) return -1;
      steps[field] = fields[field] as number;
      steps[field + 1] = at - start;
      steps[field + 2] = length;
      at += length;
    }
    return at - start;
  }

  /** Fills the record and what options tell. A template of variable length must have been measured for this very record. */
  read(template: Template, data: Uint8Array, start: number): void {
    this.#reset();
    this.#hasRare = template.hasRare;
    const count = template.steps.length;
    this.#run(template.isVariable ? this.#variableSteps : template.steps, count, data, start);
  }

  /** What is wrong with the record that was read, if it is to be a flow or a packet. */
  finishFlow(template: Template, data: Uint8Array): Reason | undefined {
    const record = this.record;
    if (template.hasSection) {
      const failure = this.#finishSection(template, data);
      if (failure === undefined) return undefined;
      if (!template.hasDestination) return failure;
    } else if (!template.hasDestination) {
      return 'record_without_address';
    }
    if (this.#ipTotalLength > 0 && !template.hasPackets) {
      // A packet by its fields (PSAMP's extended reports, RFC 5476).
      record.packets = 1;
      record.bytes = Math.min(this.#ipTotalLength, LONGEST_PACKET);
      record.isFlow = false;
    } else {
      if (record.packets === 0) {
        if (record.bytes === 0) return 'record_without_counts';
        // Firewalls tell octets alone: there were at least so many packets.
        record.packets = Math.ceil(record.bytes / 1500);
      }
      record.isFlow = true;
    }
    this.#finishPorts();
    if (template.hasInstants) {
      const span = this.#end - this.#start;
      const duration = template.instantsWrap ? span | 0 : span / template.timeFactor;
      record.durationMilliseconds = duration > 0 ? duration : 0;
    } else {
      record.durationMilliseconds /= template.timeFactor;
    }
    return undefined;
  }

  /** As the record itself tells it; 0: it does not, -1: what it tells cannot be. */
  ownRate(): number {
    let rate = 0;
    if (this.#oneIn > 0) rate = this.#oneIn;
    else if (this.#sampleSize > 0 && this.#population > 0) rate = this.#population / this.#sampleSize;
    else if (this.#probability > 0 && this.#probability <= 1) rate = 1 / this.#probability;
    // RFC 5477 has both told; exporters that tell the first alone mean one packet of so many by it.
    else if (this.#sampledRun > 0 && this.#skippedRun < 0) rate = this.#sampledRun;
    else if (this.#sampledRun > 0) rate = (this.#sampledRun + this.#skippedRun) / this.#sampledRun;
    return rate > MOST_SAMPLING_RATE ? -1 : rate >= 1 ? rate : 0;
  }

  /** Only what the record before, or nothing of this one, would leave behind: writing all of it costs 40 ns a record. */
  #reset(): void {
    const record = this.record;
    record.source0 = 0;
    record.destination0 = 0;
    if (record.family !== 4) {
      record.family = 4;
      record.source1 = 0;
      record.source2 = 0;
      record.source3 = 0;
      record.destination1 = 0;
      record.destination2 = 0;
      record.destination3 = 0;
    }
    record.protocol = 0;
    record.sourcePort = 0;
    record.destinationPort = 0;
    record.tcpFlags = 0;
    record.icmp = -1;
    record.fragment = 0;
    record.packets = 0;
    record.bytes = 0;
    record.durationMilliseconds = 0;
    record.inputInterface = -1;
    record.outputInterface = -1;
    record.ttl = -1;
    if (record.header !== undefined) {
      record.header = undefined;
      record.headerStart = 0;
      record.headerLength = 0;
    }
    this.selector = -1;
    if (this.#hasRare) this.#resetRare();
  }

  #resetRare(): void {
    this.selection = -1;
    this.selectors.length = 0;
    this.algorithm = 0;
    this.domain = 0;
    this.template = 0;
    this.#ipTotalLength = 0;
    this.#icmpType = -1;
    this.#icmpCode = 0;
    this.#fragmentOffset = 0;
    this.#fragmentFlags = 0;
    this.#oneIn = 0;
    this.#sampledRun = 0;
    this.#skippedRun = -1;
    this.#sampleSize = 0;
    this.#population = 0;
    this.#probability = 0;
    this.#sectionAt = -1;
    this.#sectionOctets = 0;
    this.#frameSize = 0;
  }

  #run(steps: Int32Array, count: number, data: Uint8Array, start: number): void {
    const record = this.record;
    for (let step = 0; step < count; step += 3) {
      const at = start + (steps[step + 1] as number);
      const length = steps[step + 2] as number;
      // Numbers of `Fill`: of literals alone V8 makes a jump table (decision 0120).
      switch (steps[step]) {
        case 1: // source4
          record.source0 = u32(data, at);
          break;
        case 2: // destination4
          record.destination0 = u32(data, at);
          break;
        case 3: // source6
          this.#setSource6(data, at);
          break;
        case 4: // destination6
          this.#setDestination6(data, at);
          break;
        case 5: // source4IfAny
          if (u32(data, at) !== 0) record.source0 = u32(data, at);
          break;
        case 6: // destination4IfAny
          if (u32(data, at) !== 0) record.destination0 = u32(data, at);
          break;
        case 7: // source6IfAny
          if (isAny(data, at)) this.#setSource6(data, at);
          break;
        case 8: // destination6IfAny
          if (isAny(data, at)) this.#setDestination6(data, at);
          break;
        case 9: // protocol
          record.protocol = u8(data, at);
          break;
        case 10: // sourcePort
          record.sourcePort = length === 2 ? u16(data, at) : number(data, at, length) & 0xffff;
          break;
        case 11: // destinationPort
          record.destinationPort = length === 2 ? u16(data, at) : number(data, at, length) & 0xffff;
          break;
        case 12: // tcpFlags
          record.tcpFlags = u8(data, at + length - 1);
          break;
        case 13: {
          // icmp
          const icmp = u16(data, at);
          if (icmp !== 0 || record.icmp < 0) record.icmp = icmp;
          break;
        }
        case 14: // icmpType
          if (u8(data, at) !== 0 || this.#icmpType < 0) this.#icmpType = u8(data, at);
          break;
        case 15: // icmpCode
          if (u8(data, at) !== 0) this.#icmpCode = u8(data, at);
          break;
        case 16: // fragmentOffset
          this.#fragmentOffset = number(data, at, length);
          break;
        case 17: // fragmentFlags
          this.#fragmentFlags = u8(data, at);
          break;
        case 18: // packets
          record.packets = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 19: // bytes
          record.bytes = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 20: // inputInterface
          record.inputInterface = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 21: // outputInterface
          record.outputInterface = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 22: // ttl
          record.ttl = u8(data, at);
          break;
        case 23: // start
          this.#start = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 24: // end
          this.#end = length === 4 ? u32(data, at) : number(data, at, length);
          break;
        case 25: // startNtp
          this.#start = u32(data, at) * 1000 + u32(data, at + 4) * NTP_FRACTION;
          break;
        case 26: // endNtp
          this.#end = u32(data, at) * 1000 + u32(data, at + 4) * NTP_FRACTION;
          break;
        case 27: // duration
          record.durationMilliseconds = number(data, at, length);
          break;
        case 28: // oneIn
          this.#oneIn = number(data, at, length);
          break;
        case 29: // sampledRun
          this.#sampledRun = number(data, at, length);
          break;
        case 30: // skippedRun
          this.#skippedRun = number(data, at, length);
          break;
        case 31: // sampleSize
          this.#sampleSize = number(data, at, length);
          break;
        case 32: // population
          this.#population = number(data, at, length);
          break;
        case 33: // probability
          this.#probability = this.#float(data, at, length);
          break;
        case 34: // selector
          this.selector = number(data, at, length);
          break;
        case 35: // selection
          this.selection = number(data, at, length);
          break;
        case 36: // selectorOfSelection
          if (this.selectors.length < 8) this.selectors.push(number(data, at, length));
          break;
        case 37: // algorithm
          this.algorithm = number(data, at, length);
          break;
        case 38: // domain
          this.domain = number(data, at, length);
          break;
        case 39: // template
          this.template = u16(data, at);
          break;
        case 40: // ipSection
          this.#sectionAt = at;
          this.#sectionLength = length;
          this.#sectionLayer = IP;
          break;
        case 41: // frameSection
          this.#sectionAt = at;
          this.#sectionLength = length;
          this.#sectionLayer = ETHERNET;
          break;
        case 42: // sectionOctets
          this.#sectionOctets = number(data, at, length);
          break;
        case 43: // frameSize
          this.#frameSize = number(data, at, length);
          break;
        case 44: // ipTotalLength
          this.#ipTotalLength = number(data, at, length);
          break;
      }
    }
  }

  #setSource6(data: Uint8Array, at: number): void {
    const record = this.record;
    record.family = 6;
    record.source0 = u32(data, at);
    record.source1 = u32(data, at + 4);
    record.source2 = u32(data, at + 8);
    record.source3 = u32(data, at + 12);
  }

  #setDestination6(data: Uint8Array, at: number): void {
    const record = this.record;
    record.family = 6;
    record.destination0 = u32(data, at);
    record.destination1 = u32(data, at + 4);
    record.destination2 = u32(data, at + 8);
    record.destination3 = u32(data, at + 12);
  }

  #float(data: Uint8Array, at: number, length: number): number {
    if (length !== 4 && length !== 8) return 0;
    for (let octet = 0; octet < length; octet += 1) this.#floats.setUint8(octet, u8(data, at + octet));
    return length === 4 ? this.#floats.getFloat32(0) : this.#floats.getFloat64(0);
  }

  /** A packet's own header says more than fields beside it; counts beside it are of the flow that it is taken from. */
  #finishSection(template: Template, data: Uint8Array): Reason | undefined {
    const record = this.record;
    if (this.#sectionAt < 0) return 'header_cut';
    const { packets, bytes } = record;
    let length = this.#sectionLength;
    if (this.#sectionOctets > 0 && this.#sectionOctets < length) length = this.#sectionOctets;
    const layer = this.#sectionLayer;
    const wireLength = layer === IP ? this.#ipTotalLength : this.#frameSize;
    const at = this.#sectionAt;
    const failure = readPacket(data, at, at + length, layer, wireLength, record);
    if (failure !== undefined) return failure;
    record.isFlow = template.hasPackets;
    record.packets = template.hasPackets ? packets : 1;
    if (template.hasPackets && bytes > 0) record.bytes = bytes;
    record.durationMilliseconds = 0;
    return undefined;
  }

  #finishPorts(): void {
    const record = this.record;
    const protocol = record.protocol;
    if (this.#fragmentOffset > 0) record.fragment = 2;
    else if ((this.#fragmentFlags & 0x20) !== 0) record.fragment = 1;
    if (protocol === 6) {
      record.icmp = -1;
    } else if (protocol === 1 || protocol === 58) {
      // NetFlow's way from before there were elements for it: type and code in place of the port.
      if (this.#icmpType >= 0) record.icmp = (this.#icmpType << 8) | this.#icmpCode;
      else if (record.icmp < 0) record.icmp = record.destinationPort;
      record.tcpFlags = 0;
      record.sourcePort = 0;
      record.destinationPort = 0;
    } else {
      record.icmp = -1;
      record.tcpFlags = 0;
      if (protocol !== 17 && protocol !== 33 && protocol !== 132 && protocol !== 136) {
        record.sourcePort = 0;
        record.destinationPort = 0;
      }
    }
    if (record.fragment === 2) {
      record.sourcePort = 0;
      record.destinationPort = 0;
      record.tcpFlags = 0;
      record.icmp = -1;
    }
  }
}

function isAny(data: Uint8Array, at: number): boolean {
  return (u32(data, at) | u32(data, at + 4) | u32(data, at + 8) | u32(data, at + 12)) !== 0;
}

function number(data: Uint8Array, at: number, length: number): number {
  switch (length) {
    case 1:
      return u8(data, at);
    case 2:
      return u16(data, at);
    case 4:
      return u32(data, at);
    case 8:
      return u32(data, at) * 0x1_0000_0000 + u32(data, at + 4);
    default:
      return uint(data, at, length);
  }
}
