/**
 * A router as rules and filters mean it: evaluator, flows and memory put together, as a packet meets them on its way.
 * Never used outside tests.
 */
import { type Evaluation, evaluate, type Verdict } from '../../firewall/evaluate.ts';
import type { Packet } from '../../firewall/packet.ts';
import type { Rule } from '../../firewall/rule.ts';
import { prefixContainsAddress } from '../../net/prefix.ts';
import { type Entry, isFilter } from '../entry.ts';
import { hasSynProxy } from '../filter-kind.ts';
import { createFlowMemory } from '../flow-memory.ts';
import { matchFilter } from '../match-filter.ts';
import { createFilterMemory, type FilterMemory } from '../memory.ts';

export interface Routed {
  /** `kept`: the router itself takes it, as the answer to a connection that it opened. */
  readonly verdict: Verdict | 'kept';
  /** The packet as the evaluator was given it. */
  readonly packet: Packet;
  readonly evaluation: Evaluation;
}

export interface ModelRouter {
  /** `inwards`: to a protected host. */
  route(packet: Packet, inwards: boolean): Routed;
}

const [fin, syn, rst, ack] = [0x01, 0x02, 0x04, 0x10];
const main = fin | syn | rst | ack;

/** Has seen nothing yet but what is in `memory`. */
export function createModelRouter(entries: readonly Entry[], memory: FilterMemory = createFilterMemory()): ModelRouter {
  const flows = createFlowMemory();
  /** Flows whose SYN the router answered, and then those that it opened. */
  const [challenged, opened] = [new Set<string>(), new Set<string>()];
  return {
    route(packet, inwards) {
      const unseen = isUnseen(entries, packet);
      const state = isTracked(entries, inwards ? packet : turned(packet)) && !unseen ? flows.see(packet) : undefined;
      const shown = unseen ? 'new' : state;
      const seen = { ...packet, ...(shown && { connectionState: shown }) };
      const evaluation = evaluate(entries, seen, { filters: memory });
      const { verdict } = evaluation;
      if (verdict === 'accept' && state) flows.pass(packet, state);
      if (!inwards) {
        const answers = ((packet.tcpFlags ?? 0) & main) === (syn | ack) && opened.has(flowOf(packet, inwards));
        return { verdict: answers && verdict === 'accept' ? 'kept' : verdict, packet: seen, evaluation };
      }
      if (verdict === 'challenge') {
        const flow = flowOf(packet, inwards);
        if (((packet.tcpFlags ?? 0) & main) === syn) challenged.add(flow);
        else if (challenged.delete(flow)) {
          // The acknowledgement of the router's own answer: it opens the connection to the server.
          opened.add(flow);
          if (state) flows.pass({ ...packet, tcpFlags: syn }, 'new');
        }
      }
      return { verdict, packet: seen, evaluation };
    },
  };
}

/** What became of the packet, in the vectors' words. */
export function outcomeOf(verdict: Routed['verdict']): 'pass' | 'discard' | 'challenge' {
  if (verdict === 'accept') return 'pass';
  return verdict === 'challenge' || verdict === 'kept' ? 'challenge' : 'discard';
}

/** Whether conntrack sees a packet to a host, and what goes back. */
function isTracked(entries: readonly Entry[], packet: Packet): boolean {
  return entries.some((entry) => {
    if (!isFilter(entry)) return asksForState(entry) && covers(entry, packet);
    const { enforcement } = entry.kind;
    if (enforcement.tracking === 'nothing') return false;
    const match = matchFilter(entry, packet);
    return match.matched && (enforcement.tracks ?? entry.kind.transports).includes(match.transport);
  });
}

function asksForState({ connectionState, disabled, dst, packetLengthBytes, packetType }: Rule): boolean {
  if (connectionState === undefined || disabled) return false;
  return (packetType ?? 'host') === 'host' && (dst.family === 4 || (packetLengthBytes ?? 40) >= 40);
}

function covers({ dst }: Rule, { family, destination }: Packet): boolean {
  return dst.family === family && prefixContainsAddress(dst, { family, value: destination });
}

/** As if the packet went the other way. */
function turned(packet: Packet): Packet {
  const { source, destination, sourcePort, destinationPort, ...rest } = packet;
  return {
    ...rest,
    source: destination,
    destination: source,
    ...(destinationPort !== undefined && { sourcePort: destinationPort }),
    ...(sourcePort !== undefined && { destinationPort: sourcePort }),
  };
}

/** Whether the packet is a SYN that a SYN proxy wants to be kept from conntrack, whatever rules say of it. */
export function isUnseen(entries: readonly Entry[], packet: Packet): boolean {
  if (((packet.tcpFlags ?? 0) & main) !== syn) return false;
  return entries.some((entry) => isFilter(entry) && hasSynProxy(entry.kind) && matchFilter(entry, packet).matched);
}

function flowOf({ source, destination, sourcePort, destinationPort }: Packet, inwards: boolean): string {
  const [from, to] = [`${source} ${sourcePort}`, `${destination} ${destinationPort}`];
  return inwards ? `${from} ${to}` : `${to} ${from}`;
}
