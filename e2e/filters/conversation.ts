/**
 * The frames of one client's packets and of their answers, numbered as TCP numbers them, so that a router that tracks
 * connections can follow. Owns sequence numbers; must never look at what a filter would do.
 */
import type { Packet } from '@levee/core/firewall/packet.ts';
import { type PacketSpec, protocolNumber, type Transport } from '@levee/lab/packet-spec.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';

const [fin, syn, ack] = [0x01, 0x02, 0x10];
/** Of the server's numbers; the client's begin with the id of its SYN (kernel-path.ts finds answers by it). */
const serverStart = 0x5000_0000;

/** What each side has sent so far, and has of the other. */
interface Numbers {
  clientNext: number;
  clientHas: number;
  serverNext: number;
  serverHas: number;
}

export class Conversation {
  private readonly flows = new Map<string, Numbers>();

  /** `id`: as of PacketSpec; of a SYN below 2^16. */
  spec(packet: Packet, from: 'client' | 'server', id: number): PacketSpec {
    const { family, source, destination, payload = new Uint8Array(), totalLengthBytes } = packet;
    return {
      family,
      source,
      destination,
      sourceHardware: from === 'client' ? hardwareAddress.attacker : hardwareAddress.customer,
      destinationHardware: from === 'client' ? hardwareAddress.routerOutside : hardwareAddress.routerInside,
      id,
      transport: this.transport(packet, from, id),
      payload,
      ...(totalLengthBytes !== undefined && { totalLength: totalLengthBytes }),
    };
  }

  /** The other side received it. */
  arrived(packet: Packet, from: 'client' | 'server'): void {
    const numbers = this.flows.get(flowOf(packet, from));
    if (numbers === undefined) return;
    if (from === 'client') numbers.serverHas = numbers.clientNext;
    else numbers.clientHas = add(numbers.clientHas, octetsOf(packet));
  }

  /** The router answered the client's SYN itself, with that sequence number. The server hears of the SYN from it. */
  challenged(packet: Packet, sequence: number): void {
    const numbers = this.flows.get(flowOf(packet, 'client'));
    if (numbers === undefined) return;
    numbers.clientHas = add(sequence, 1);
    numbers.serverHas = numbers.clientNext;
  }

  /** The router kept the client's packet: what it carried is sent again. */
  kept(packet: Packet): void {
    const numbers = this.flows.get(flowOf(packet, 'client'));
    if (numbers) numbers.clientNext = add(numbers.clientNext, 2 ** 32 - (packet.payload?.length ?? 0));
  }

  private transport(packet: Packet, from: 'client' | 'server', id: number): Transport {
    const { sourcePort = 0, destinationPort = 0 } = packet;
    if (packet.upperProtocol === protocolNumber.udp) return { kind: 'udp', sourcePort, destinationPort };
    if (packet.upperProtocol !== protocolNumber.tcp) {
      return { kind: 'icmp', type: packet.icmpType ?? 0, code: packet.icmpCode ?? 0, identifier: 1 };
    }
    const flags = packet.tcpFlags ?? 0;
    const numbers = this.numbersOf(packet, from, id);
    const sequence = from === 'client' ? numbers.clientNext : numbers.serverNext;
    const has = from === 'client' ? numbers.clientHas : numbers.serverHas;
    const next = add(sequence, octetsOf(packet));
    if (from === 'client') numbers.clientNext = next;
    else numbers.serverNext = next;
    const acknowledgement = (flags & ack) !== 0 ? has : 0;
    return { kind: 'tcp', sourcePort, destinationPort, flags, sequence, acknowledgement };
  }

  private numbersOf(packet: Packet, from: 'client' | 'server', id: number): Numbers {
    const key = flowOf(packet, from);
    const found = this.flows.get(key);
    const opens = ((packet.tcpFlags ?? 0) & (syn | ack)) === syn;
    if (found && !opens) return found;
    const made = found ?? { clientNext: 0, clientHas: serverStart, serverNext: serverStart, serverHas: 0 };
    if (from === 'client' || !found) made.clientNext = id * 2 ** 14;
    if (!found) made.serverHas = made.clientNext;
    this.flows.set(key, made);
    return made;
  }
}

/** Of sequence space (RFC 9293, 3.4). */
function octetsOf({ payload, tcpFlags = 0 }: Packet): number {
  return (payload?.length ?? 0) + ((tcpFlags & syn) !== 0 ? 1 : 0) + ((tcpFlags & fin) !== 0 ? 1 : 0);
}

function add(sequence: number, octets: number): number {
  return (sequence + octets) % 2 ** 32;
}

/** A client's address is its own: ports tell its flows apart. */
function flowOf({ sourcePort, destinationPort }: Packet, from: 'client' | 'server'): string {
  return from === 'client' ? `${sourcePort} ${destinationPort}` : `${destinationPort} ${sourcePort}`;
}
