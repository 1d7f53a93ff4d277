/**
 * Which flows a router has seen, and in which state it sees a packet of one: a model of Linux's connection tracking, as
 * far as TCP, UDP and questions of ICMP to and from protected hosts go (net/netfilter/nf_conntrack_core.c,
 * nf_conntrack_proto_tcp.c). A flow is tracked from its first packet that gets through. Sequence numbers and time-outs
 * are taken to be in order. Must never ask a kernel.
 */
import type { Packet } from '../firewall/packet.ts';
import type { ConnectionState } from '../firewall/rule.ts';

export interface FlowMemory {
  /** Where the packet enters: what it is, and whatever becomes of it, an answer has been seen from now on. */
  see(packet: Packet): ConnectionState;
  /** It got through, in that state. */
  pass(packet: Packet, state: ConnectionState): void;
}

interface Flow {
  /** Who sent the first packet. */
  readonly origin: string;
  /** That it began with a SYN which no SYN-ACK has answered yet. */
  opening: boolean;
  answered: boolean;
  closed: boolean;
}

const [fin, syn, rst, ack] = [0x01, 0x02, 0x04, 0x10];
/** What a TCP header may carry, PSH, ECE and CWR aside (tcp_valid_flags). */
const sensibleFlags: ReadonlySet<number> = new Set([0x02, 0x22, 0x12, 0x04, 0x14, 0x11, 0x31, 0x10, 0x30]);

export function createFlowMemory(): FlowMemory {
  const flows = new Map<string, Flow>();
  return {
    see(packet) {
      const ends = endsOf(packet);
      if (ends === undefined) return 'invalid';
      const flow = flows.get(ends.key);
      if (flow?.closed === true && opens(packet)) flows.delete(ends.key);
      else if (flow) {
        // Of a flow that was never answered, a reset leaves nothing.
        if (!flow.answered && has(packet, rst)) flows.delete(ends.key);
        return stateWithin(flow, ends.sender, packet);
      }
      return startsFlow(packet) ? 'new' : 'invalid';
    },
    pass(packet, state) {
      const ends = endsOf(packet);
      if (ends === undefined || state === 'invalid') return;
      const flow = flows.get(ends.key);
      if (flow) {
        if (has(packet, rst)) flow.closed = true;
        return;
      }
      // A reset that has just ended one begins none.
      if (startsFlow(packet))
        flows.set(ends.key, { origin: ends.sender, opening: opens(packet), answered: false, closed: false });
    },
  };
}

/** The table tcp_conntracks of nf_conntrack_proto_tcp.c, as far as a packet's own flags and an answer decide. */
function stateWithin(flow: Flow, sender: string, packet: Packet): ConnectionState {
  const flags = packet.tcpFlags;
  if (flags !== undefined && !isSensible(flags)) return 'invalid';
  if (sender !== flow.origin) {
    if (flow.opening && has(packet, fin)) return 'invalid';
    if (has(packet, syn) && has(packet, ack)) flow.opening = false;
    flow.answered = true;
    return 'established';
  }
  // Whoever began does not answer himself.
  if (has(packet, syn) && has(packet, ack)) return 'invalid';
  if (flow.opening && !opens(packet) && !has(packet, rst)) return 'invalid';
  return flow.answered ? 'established' : 'new';
}

/** What may be a flow's first packet: of TCP a SYN, or a segment in the middle of a flow that began before. */
function startsFlow(packet: Packet): boolean {
  if (packet.upperProtocol === 6) {
    const flags = packet.tcpFlags ?? 0;
    return isSensible(flags) && (opens(packet) || (flags & (syn | rst | fin | ack)) === ack);
  }
  return packet.upperProtocol === 17 || questionOf(packet)?.asks === true;
}

function opens({ tcpFlags = 0 }: Packet): boolean {
  return (tcpFlags & (syn | ack | rst | fin)) === syn;
}

function has({ tcpFlags = 0 }: Packet, flag: number): boolean {
  return (tcpFlags & flag) !== 0;
}

function isSensible(flags: number): boolean {
  return sensibleFlags.has(flags & 0x37);
}

/** Questions of ICMP and ICMPv6 with an answer of its own: the type of each, and of its answer (icmp_invert, invmap). */
const questions = {
  4: { 8: 0, 13: 14, 15: 16, 17: 18 },
  6: { 128: 129, 139: 140 },
} as const;

/** Which question the message is, or answers. */
function questionOf({ family, upperProtocol, icmpType }: Packet): { type: string; asks: boolean } | undefined {
  if (upperProtocol !== (family === 4 ? 1 : 58)) return undefined;
  for (const [question, answer] of Object.entries(questions[family])) {
    if (icmpType === Number(question) || icmpType === answer) return { type: question, asks: icmpType !== answer };
  }
  return undefined;
}

/** Undefined: a packet that belongs to no flow of its own. */
function endsOf(packet: Packet): { readonly key: string; readonly sender: string } | undefined {
  const { upperProtocol, source, destination, sourcePort, destinationPort } = packet;
  const question = questionOf(packet);
  if (question) {
    const [asker, asked] = question.asks ? [source, destination] : [destination, source];
    return { key: `${upperProtocol} ${question.type} ${asker} ${asked}`, sender: `${source}` };
  }
  if (sourcePort === undefined || destinationPort === undefined) return undefined;
  const [from, to] = [`${source} ${sourcePort}`, `${destination} ${destinationPort}`];
  return { key: `${upperProtocol} ${[from, to].sort().join(' ')}`, sender: from };
}
