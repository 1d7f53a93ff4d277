/**
 * Flows to tracked destinations, step by step, with the state that connection tracking must see: new until a reply
 * has come, established after it, related for an ICMP error about it, invalid for what belongs to nothing.
 * Models conntrack as far as these flows go; must never ask the kernel.
 */

import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import { type FilterScope, trackedScopesOf } from '@levee/core/filter/scope.ts';
import type { Verdict } from '@levee/core/firewall/evaluate.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { ConnectionState } from '@levee/core/firewall/rule.ts';
import { buildFragments, buildFrame } from '@levee/lab/packet-build.ts';
import { type PacketSpec, protocolNumber, type Transport } from '@levee/lab/packet-spec.ts';
import type { Random } from '@levee/lab/random.ts';
import { hardwareAddress } from '@levee/lab/router-path.ts';
import { describePacket } from './packet-meaning.ts';
import { covers } from './random-rules.ts';
import { flowSources, trackedHosts } from './world.ts';

type Kind = 'tcp' | 'udp' | 'fragmented-udp' | 'echo' | 'orphan';

/** What a flow sends next. */
export interface FlowStep {
  readonly flow: Flow;
  readonly from: 'attacker' | 'customer';
  readonly spec: PacketSpec;
  readonly packet: Packet;
  readonly frames: readonly Uint8Array[];
}

export class Flow {
  readonly id: number;
  readonly kind: Kind;
  private readonly family: 4 | 6;
  private readonly client: bigint;
  private readonly server: bigint;
  private readonly clientPort: number;
  private readonly serverPort: number;
  /** Conntrack holds an entry: some packet of the flow went all the way through. */
  private confirmed = false;
  private replied = false;
  private over = false;

  /**
   * `id` 1 … 16383, unique in a batch; `serial` below 2^16, unique among the flows of one kernel: it makes the
   * client's address.
   */
  constructor(random: Random, id: number, serial: number, entries: readonly Entry[]) {
    this.id = id;
    this.family = random.chance(0.5) ? 4 : 6;
    this.server = random.pick(trackedHosts[this.family]);
    // Where nothing is tracked, fragments stay fragments, each with a fate of its own.
    const whole = isTracked(entries, this.family, this.server) ? 'fragmented-udp' : 'udp';
    this.kind = random.weighted([
      [4, 'tcp' as const],
      [3, 'udp' as const],
      [1, whole],
      [1, 'echo' as const],
      [2, 'orphan' as const],
    ]);
    this.client = flowSources[this.family] + BigInt(serial);
    this.clientPort = 20000 + (id & 0x3fff);
    const aimed = entries.filter(
      (entry) => (isFilter(entry) || entry.connectionState !== undefined) && entry.destinationPorts !== undefined,
    );
    const port = aimed.length > 0 ? random.pick(aimed).destinationPorts?.start : undefined;
    this.serverPort = port !== undefined && random.chance(0.6) ? port : random.pick([53, 80, 443, 27015]);
  }

  /** Steps in order: 0 and 1 from the client, 2 the answer, 3 from the client, 4 an error about the answer. */
  step(number: 0 | 1 | 2 | 3 | 4): FlowStep | undefined {
    if (this.over) return undefined;
    const fromServer = number === 2;
    if (fromServer && !this.confirmed) return undefined; // an answer nobody asked for would be a flow of its own
    if (this.kind === 'orphan' && number > 0) return undefined;
    if (number === 4 && (this.kind === 'echo' || this.kind === 'orphan' || !this.replied)) return undefined;
    const spec = number === 4 ? this.errorSpec() : this.spec(number);
    const fragmented = this.kind === 'fragmented-udp' && number !== 4;
    const frames = fragmented ? buildFragments(spec, [256, 304]) : [buildFrame(spec)];
    // Tracked fragments are put together before the rules see them (packet.ts of core).
    const described = describePacket(spec);
    const extensionHeaders = fragmented && this.family === 6 ? [protocolNumber.fragment] : described.extensionHeaders;
    return {
      flow: this,
      from: fromServer ? 'customer' : 'attacker',
      spec,
      packet: { ...described, extensionHeaders, connectionState: this.stateOf(number) },
      frames,
    };
  }

  /** What the rules did to a step: conntrack keeps an entry of what got through only. */
  settle(number: 0 | 1 | 2 | 3 | 4, verdict: Verdict): void {
    if (number === 2)
      this.replied = true; // seen where it entered, whatever the rules said afterwards
    else if (verdict === 'accept' && number !== 4) this.confirmed = true;
    // A reset that the router sends closes the connection in its own tracking: what follows is another story.
    if (verdict === 'reject' && this.confirmed) this.over = true;
  }

  private stateOf(number: 0 | 1 | 2 | 3 | 4): ConnectionState {
    if (this.kind === 'orphan') return 'invalid';
    if (number === 4) return 'related';
    if (number === 2) return 'established';
    return this.replied ? 'established' : 'new';
  }

  private spec(number: 0 | 1 | 2 | 3): PacketSpec {
    const fromServer = number === 2;
    return {
      family: this.family,
      source: fromServer ? this.server : this.client,
      destination: fromServer ? this.client : this.server,
      sourceHardware: fromServer ? hardwareAddress.customer : hardwareAddress.attacker,
      destinationHardware: fromServer ? hardwareAddress.routerInside : hardwareAddress.routerOutside,
      id: this.id,
      transport: this.transport(number),
      ...(this.kind === 'fragmented-udp' && { totalLength: (this.family === 4 ? 20 : 40) + 700 }),
    };
  }

  private transport(number: 0 | 1 | 2 | 3): Transport {
    const fromServer = number === 2;
    const ports = fromServer
      ? { sourcePort: this.serverPort, destinationPort: this.clientPort }
      : { sourcePort: this.clientPort, destinationPort: this.serverPort };
    const isn = this.id << 14;
    switch (this.kind) {
      case 'orphan':
        return { kind: 'tcp', ...ports, flags: 0x14, sequence: isn, acknowledgement: isn };
      case 'echo':
        return { kind: 'icmp', type: this.family === 4 ? (fromServer ? 0 : 8) : fromServer ? 129 : 128, code: 0 };
      case 'tcp':
        if (fromServer) return { kind: 'tcp', ...ports, flags: 0x12, sequence: isn, acknowledgement: isn + 1 };
        if (this.replied) return { kind: 'tcp', ...ports, flags: 0x10, sequence: isn + 1, acknowledgement: isn + 1 };
        return { kind: 'tcp', ...ports, flags: 0x02, sequence: isn };
      default:
        return { kind: 'udp', ...ports };
    }
  }

  /** The client's host says that the answer's port is closed, quoting the answer. */
  private errorSpec(): PacketSpec {
    const quoted = buildFrame({ ...this.spec(2), id: 0 }).slice(14, 14 + 64);
    const base = { ...this.spec(3) };
    return {
      family: base.family,
      source: base.source,
      destination: base.destination,
      sourceHardware: base.sourceHardware,
      destinationHardware: base.destinationHardware,
      id: this.id,
      transport: { kind: 'icmp', type: this.family === 4 ? 3 : 1, code: this.family === 4 ? 3 : 4 },
      payload: quoted,
      totalLength: (this.family === 4 ? 28 : 48) + quoted.length,
    };
  }
}

/** For certain: some rule or filter in force has fragments of UDP to the server put together. */
function isTracked(entries: readonly Entry[], family: 4 | 6, server: bigint): boolean {
  const address = { family, value: server, length: family === 4 ? 32 : 128 };
  return entries.some((entry) => {
    if (!covers(entry.dst, address)) return false;
    // Whichever ports it looks at: fragments show none.
    if (isFilter(entry)) return entry.src === undefined && trackedScopesOf(entry).some(isOfUdp);
    const { connectionState, disabled, packetType, packetLengthBytes } = entry;
    return connectionState !== undefined && !disabled && packetType === undefined && packetLengthBytes === undefined;
  });
}

function isOfUdp({ transport }: FilterScope): boolean {
  return transport === 'udp';
}
