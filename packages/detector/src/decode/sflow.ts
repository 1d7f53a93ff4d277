/**
 * Owns sFlow version 5 (sflow.org, "sFlow Version 5"): datagrams, samples, and which record of a sample tells of its packet.
 * Samples and records of other kinds are passed over by their lengths, never looked into.
 */
import { MOST_SAMPLING_RATE } from '@levee/contract/detector.ts';
import { LONGEST_PACKET } from '@levee/core/detection/bounds.ts';
import type { DecodeCounts, FlowRecord, RecordSink } from '../flow-record.ts';
import { u8, u16, u32 } from './octets.ts';
import { ETHERNET, IP, MPLS, PPP, readPacket } from './packet.ts';
import { countDropped, type Reason } from './reasons.ts';
import { Sequence } from './sequence.ts';

/** Agents and sub-agents behind one exporter's address of which sequence numbers are followed. */
const MOST_AGENTS = 64;

class Agent {
  readonly words = new Uint32Array(5);
  readonly sequence = new Sequence();
}

/** What is known of the agents that one exporter's datagrams name. */
export class SflowAgents {
  readonly #agents: Agent[] = [];
  #last: Agent | undefined;
  #turn = 0;

  /** The sequence of the agent whose address of `words` words is at `at`, with its sub-agent's number behind it. */
  sequence(data: Uint8Array, at: number, words: number): Sequence {
    if (this.#last !== undefined && isAgent(this.#last, data, at, words)) return this.#last.sequence;
    let found = this.#agents.find((agent) => isAgent(agent, data, at, words));
    if (found === undefined) {
      found = new Agent();
      for (let word = 0; word < words; word += 1) found.words[word] = u32(data, at + 4 * word);
      found.words[4] = u32(data, at + 4 * words);
      if (this.#agents.length < MOST_AGENTS) this.#agents.push(found);
      else this.#agents[this.#turn++ % MOST_AGENTS] = found;
    }
    this.#last = found;
    return found.sequence;
  }
}

function isAgent(agent: Agent, data: Uint8Array, at: number, words: number): boolean {
  const known = agent.words;
  for (let word = 0; word < 4; word += 1) {
    if (known[word] !== (word < words ? u32(data, at + 4 * word) : 0)) return false;
  }
  return known[4] === u32(data, at + 4 * words);
}

/** Returns why the rest of the datagram could not be read. */
export function decodeSflow(
  data: Uint8Array,
  length: number,
  agents: SflowAgents,
  record: FlowRecord,
  counts: DecodeCounts,
  sink: RecordSink,
): Reason | undefined {
  if (length < 8) return 'datagram_cut';
  const addressType = u32(data, 4);
  const words = addressType === 1 ? 1 : addressType === 2 ? 4 : 0;
  if (addressType > 2) return 'sample_malformed';
  let at = 8 + 4 * words;
  if (length - at < 16) return 'datagram_cut';
  counts.lost += agents.sequence(data, 8, words).note(u32(data, at + 4), 1, u32(data, at + 8));
  const samples = u32(data, at + 12);
  at += 16;
  if (samples === 0) return 'datagram_empty';
  for (let index = 0; index < samples; index += 1) {
    if (length - at < 8) return 'datagram_cut';
    const kind = u32(data, at);
    const sampleLength = u32(data, at + 4);
    at += 8;
    if (sampleLength > length - at) return 'datagram_cut';
    const end = at + sampleLength;
    let reason: Reason | undefined;
    if (kind === 1 || kind === 3) reason = readFlowSample(data, at, end, kind === 3, record);
    else if (kind === 2 || kind === 4) reason = 'counter_sample';
    else reason = 'sample_unknown';
    if (reason === undefined) {
      counts.records += 1;
      sink(record);
    } else {
      countDropped(counts, reason);
    }
    // XDR's lengths leave out what fills up to four octets.
    at = end + (-sampleLength & 3);
  }
  return undefined;
}

function readFlowSample(
  data: Uint8Array,
  start: number,
  end: number,
  isExpanded: boolean,
  record: FlowRecord,
): Reason | undefined {
  let at = start;
  if (isExpanded) {
    if (end - at < 44) return 'sample_malformed';
    record.samplingRate = u32(data, at + 12);
    record.inputInterface = interfaceIndex(u32(data, at + 24), u32(data, at + 28));
    record.outputInterface = interfaceIndex(u32(data, at + 32), u32(data, at + 36));
    at += 40;
  } else {
    if (end - at < 32) return 'sample_malformed';
    record.samplingRate = u32(data, at + 8);
    const input = u32(data, at + 20);
    const output = u32(data, at + 24);
    record.inputInterface = interfaceIndex(input >>> 30, input & 0x3fffffff);
    record.outputInterface = interfaceIndex(output >>> 30, output & 0x3fffffff);
    at += 28;
  }
  if (record.samplingRate > MOST_SAMPLING_RATE) return 'value_absurd';
  let left = u32(data, at);
  at += 4;
  // A header tells the most; addresses alone serve where none was sent, or none that can be read.
  let addressesAt = -1;
  let addressesKind = 0;
  let reason: Reason = 'sample_without_packet';
  for (; left > 0; left -= 1) {
    if (end - at < 8) return 'sample_malformed';
    const kind = u32(data, at);
    const recordLength = u32(data, at + 4);
    at += 8;
    if (recordLength > end - at) return 'sample_malformed';
    if (kind === 1) {
      const failure = readHeaderRecord(data, at, at + recordLength, record);
      if (failure === undefined) return undefined;
      reason = failure;
    } else if ((kind === 3 && recordLength >= 32) || (kind === 4 && recordLength >= 56)) {
      addressesAt = at;
      addressesKind = kind;
    }
    at += recordLength + (-recordLength & 3);
  }
  if (addressesAt < 0) return reason;
  readAddresses(data, addressesAt, addressesKind === 3 ? 1 : 4, record);
  return undefined;
}

/** Of several output ports, a discarded packet, or one of the device itself there is no index. */
function interfaceIndex(format: number, value: number): number {
  return format !== 0 || value === 0 || value === 0x3fffffff || value === 0xffffffff ? -1 : value;
}

function readHeaderRecord(data: Uint8Array, at: number, end: number, record: FlowRecord): Reason | undefined {
  if (end - at < 16) return 'sample_malformed';
  const protocol = u32(data, at);
  const wireLength = Math.max(0, u32(data, at + 4) - u32(data, at + 8));
  const captured = u32(data, at + 12);
  const start = at + 16;
  if (captured > end - start) return 'sample_malformed';
  let layer: number;
  if (protocol === 1) layer = ETHERNET;
  else if (protocol === 11 || protocol === 12) layer = IP;
  else if (protocol === 13) layer = MPLS;
  else if (protocol === 7 || protocol === 14) layer = PPP;
  else return 'header_unknown';
  const reason = readPacket(data, start, start + captured, layer, wireLength, record);
  if (reason === undefined) {
    record.packets = 1;
    record.durationMilliseconds = 0;
    record.isFlow = false;
  }
  return reason;
}

/** Sampled IPv4 or IPv6 (formats 3 and 4): length, protocol, two addresses of `words` words, ports, TCP's flags. */
function readAddresses(data: Uint8Array, at: number, words: number, record: FlowRecord): void {
  const destination = at + 8 + 4 * words;
  const ports = destination + 4 * words;
  const isLong = words === 4;
  record.family = isLong ? 6 : 4;
  record.bytes = Math.min(u32(data, at), LONGEST_PACKET);
  record.protocol = u32(data, at + 4) & 255;
  record.source0 = u32(data, at + 8);
  record.source1 = isLong ? u32(data, at + 12) : 0;
  record.source2 = isLong ? u32(data, at + 16) : 0;
  record.source3 = isLong ? u32(data, at + 20) : 0;
  record.destination0 = u32(data, destination);
  record.destination1 = isLong ? u32(data, destination + 4) : 0;
  record.destination2 = isLong ? u32(data, destination + 8) : 0;
  record.destination3 = isLong ? u32(data, destination + 12) : 0;
  record.sourcePort = u16(data, ports + 2);
  record.destinationPort = u16(data, ports + 6);
  record.tcpFlags = u8(data, ports + 11);
  record.icmp = -1;
  record.fragment = 0;
  record.ttl = -1;
  record.packets = 1;
  record.durationMilliseconds = 0;
  record.isFlow = false;
  record.header = undefined;
  record.headerStart = 0;
  record.headerLength = 0;
}
