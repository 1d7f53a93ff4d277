/**
 * Plays many conversations at once through a real router and through the evaluator, step by step: all first packets, then
 * all second ones, …, so that in each the order is what it says. Owns nothing but the comparison; must never repair or
 * excuse a difference.
 */
import { type ModelRouter, outcomeOf } from '@levee/core/filter/testing/model-router.ts';
import { entryOf } from '@levee/core/firewall/evaluate.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { type KernelPath, packetKey } from '../kernel/kernel-path.ts';
import { Conversation } from './conversation.ts';

export interface Turn {
  readonly from: 'client' | 'server';
  readonly packet: Packet;
  /** What the vector says of it; absent where only model and kernel are held to each other. */
  readonly expect?: Outcome | undefined;
}

export type Outcome = ReturnType<typeof outcomeOf>;

export interface Play {
  readonly says: string;
  /** What is loaded, as a model: the same one for all that share a filter or a flow. */
  readonly router: ModelRouter;
  readonly turns: readonly Turn[];
}

export interface PlayReport {
  packets: number;
  /** How many of the clients' packets had each outcome, so that a run that tests nothing shows. */
  readonly outcomes: Record<Outcome, number>;
  readonly differences: PlayDifference[];
}

export interface PlayDifference {
  readonly packet: Packet;
  readonly text: string;
}

const idsAtMost = 60_000;

/** The table is loaded. A conversation ends with its first difference, and with a packet that the router rejects. */
export async function playAll(kernel: KernelPath, plays: readonly Play[]): Promise<PlayReport> {
  const report: PlayReport = { packets: 0, outcomes: { pass: 0, discard: 0, challenge: 0 }, differences: [] };
  const running = plays.map((play): Running => ({ play, conversations: new Map(), over: false }));
  const longest = Math.max(0, ...plays.map(({ turns }) => turns.length));
  for (let index = 0; index < longest; index++) {
    for (const from of ['client', 'server'] as const) {
      const due = running.filter(({ play, over }) => !over && play.turns[index]?.from === from);
      for (let start = 0; start < due.length; start += idsAtMost) {
        await playTurn(kernel, due.slice(start, start + idsAtMost), index, from, report);
      }
    }
  }
  return report;
}

interface Running {
  readonly play: Play;
  readonly conversations: Map<bigint, Conversation>;
  over: boolean;
}

async function playTurn(
  kernel: KernelPath,
  due: readonly Running[],
  index: number,
  from: 'client' | 'server',
  report: PlayReport,
): Promise<void> {
  const sent = due.map((each, place) => {
    const { packet } = each.play.turns[index] as Turn;
    const client = from === 'client' ? packet.source : packet.destination;
    const conversation = each.conversations.get(client) ?? new Conversation();
    each.conversations.set(client, conversation);
    return { each, conversation, spec: conversation.spec(packet, from, place + 1) };
  });
  const frames = sent.map(({ spec }) => buildFrame(spec));
  const observed = await kernel.send(frames, from === 'client' ? 'attacker' : 'customer');
  for (const [place, { each, conversation, spec }] of sent.entries()) {
    const { packet, expect } = each.play.turns[index] as Turn;
    const { verdict, evaluation, packet: seen } = each.play.router.route(packet, from === 'client');
    const outcome = outcomeOf(verdict);
    const key = packetKey(spec.family, spec.id);
    const forwarded = observed.forwarded.get(key) ?? 0;
    const challenge = observed.challenged.get(key);
    report.packets += 1;
    if (forwarded > 0) conversation.arrived(packet, from);
    if (from === 'client' && outcome === 'challenge') conversation.kept(packet);
    if (challenge !== undefined) conversation.challenged(packet, challenge);
    if (from === 'client') report.outcomes[outcome] += 1;
    // The router's reset closes the flow in its own tracking: what follows is another story.
    if (verdict === 'reject') each.over = true;
    // Octets that arrive past conntrack: the model knows no numbers, and conntrack discards their acknowledgement.
    if (forwarded > 0 && seen.connectionState === 'invalid' && isData(seen)) each.over = true;
    const wrong: string[] = [];
    if (expect !== undefined && outcome !== expect) wrong.push(`the evaluator says ${outcome}, expected ${expect}`);
    if (forwarded !== (outcome === 'pass' ? 1 : 0)) wrong.push(`the evaluator says ${outcome}, ${forwarded} arrived`);
    if ((challenge !== undefined) !== (verdict === 'challenge' && isSyn(packet))) {
      const did = challenge === undefined ? 'answered nothing' : 'answered';
      wrong.push(`the evaluator says ${outcome}, and the router ${did}`);
    }
    if (wrong.length === 0) continue;
    each.over = true;
    const trail = evaluation.trail.map((step) => {
      const found = step.matched ? ('why' in step ? `${step.effect}, ${step.why}` : step.effect) : step.mismatch;
      return `${entryOf(step).uuid}: ${found}`;
    });
    const address = (value: bigint) => formatAddress({ family: packet.family, value });
    report.differences.push({
      packet,
      text: [
        `IPv${packet.family}, step ${index + 1} of "${each.play.says}": ${wrong.join('; ')}`,
        `  evaluator: ${trail.join('; ')}`,
        `  ${address(packet.source)} to ${address(packet.destination)}`,
        `  frame ${Buffer.from((frames[place] as Uint8Array).subarray(0, 200)).toString('hex')}`,
      ].join('\n'),
    });
  }
}

function isSyn({ tcpFlags }: Packet): boolean {
  return tcpFlags !== undefined && (tcpFlags & 0x12) === 0x02;
}

function isData({ tcpFlags, payload }: Packet): boolean {
  return tcpFlags !== undefined && (payload?.length ?? 0) > 0;
}
