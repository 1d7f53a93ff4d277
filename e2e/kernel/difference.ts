/**
 * Kernel against meaning for one packet: what was expected, what happened, and, when they differ, the fewest rules
 * and filters with which they still do, with the evaluator's trail and the nft text. Must never repair or excuse a difference.
 */

import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import { createFilterMemory, type FilterMemory } from '@levee/core/filter/memory.ts';
import { type Evaluation, entryOf, evaluate, type TrailEntry } from '@levee/core/firewall/evaluate.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import type { PacketSpec } from '@levee/lab/packet-spec.ts';
import { type KernelPath, type Observed, packetKey } from './kernel-path.ts';
import { answerToRejected } from './packet-meaning.ts';
import { covers } from './random-rules.ts';
import { settle } from './settling.ts';

/** A packet on the wire and what it is to the evaluator. `frames` has several when it travels in fragments. */
export interface Probe {
  readonly spec: PacketSpec;
  readonly packet: Packet;
  readonly frames: readonly Uint8Array[];
  readonly from: 'attacker' | 'customer';
}

export interface Difference {
  readonly probe: Probe;
  readonly evaluation: Evaluation;
  readonly wrong: readonly string[];
}

/** The meaning's verdict, and every way in which the kernel did something else. */
export function compare(
  entries: readonly Entry[],
  probe: Probe,
  observed: Observed,
  ingress: boolean,
  memory: FilterMemory,
): { readonly evaluation: Evaluation; readonly difference?: Difference } {
  const { spec, packet } = probe;
  const evaluation = evaluate(entries, packet, { filters: memory });
  const key = packetKey(spec.family, spec.id);
  const forwarded = observed.forwarded.get(key) ?? 0;
  const passedIngress = observed.passedIngress.get(key) ?? 0;
  const answers = observed.answered.get(key) ?? [];
  const wrong: string[] = [];
  const host = packet.packetType === 'host';
  const passes = evaluation.verdict === 'accept';
  // The router sends on what conntrack put together in fragments of its own making: one at least.
  const expected = host && passes ? (probe.frames.length > 1 ? Math.max(1, forwarded) : 1) : 0;
  if (forwarded !== expected) wrong.push(`${forwarded} frames arrived, expected ${expected}`);
  const tapped = !host && (passes || !(ingress && isAskedAtIngress(entries, packet))) ? 1 : 0;
  if (passedIngress !== tapped) wrong.push(`${passedIngress} frames passed the ingress hook, expected ${tapped}`);
  const wanted = evaluation.verdict !== 'reject' ? 'none' : probe.frames.length > 1 ? 'any' : answerToRejected(spec);
  if (wanted !== 'any') {
    const got = answers.length === 0 ? 'none' : answers.join('+');
    if (got !== wanted) wrong.push(`answer ${got}, expected ${wanted}`);
  }
  const challenged = observed.challenged.has(key);
  if (challenged !== (evaluation.verdict === 'challenge' && isSyn(packet))) {
    wrong.push(challenged ? 'the router answered a SYN' : 'the router answered no SYN');
  }
  const undecided = evaluation.trail.find((step) => 'filter' in step && step.matched && step.effect === 'undecided');
  if (undecided) wrong.push(`the filter ${entryOf(undecided).uuid} cannot decide`);
  return { evaluation, ...(wrong.length > 0 && { difference: { probe, evaluation, wrong } }) };
}

function isSyn({ tcpFlags }: Packet): boolean {
  return tcpFlags !== undefined && (tcpFlags & 0x12) === 0x02;
}

/**
 * Frames that are not the router's are never forwarded, whatever the rules say; the ingress hook looks at them only
 * where some rule is about such frames.
 */
function isAskedAtIngress(entries: readonly Entry[], packet: Packet): boolean {
  const bits = packet.family === 4 ? 32 : 128;
  return entries.some(
    (rule) =>
      !isFilter(rule) &&
      !rule.disabled &&
      rule.packetType !== undefined &&
      rule.packetType !== 'host' &&
      rule.connectionState === undefined &&
      (packet.family === 4 || (rule.packetLengthBytes ?? 40) >= 40) &&
      covers(rule.dst, { family: packet.family, value: packet.destination, length: bits }),
  );
}

/**
 * Text of a difference. `entries` in the order in which the compiler came to know them. The table on the router is
 * replaced while looking for the fewest of them; filters have settled then and know nobody.
 */
export async function explainDifference(
  kernel: KernelPath,
  entries: readonly Entry[],
  difference: Difference,
  ingressDevices: readonly string[],
): Promise<string> {
  const { probe } = difference;
  const table = kernel.listRuleset();
  const bits = probe.packet.family === 4 ? 32 : 128;
  const target = { family: probe.packet.family, value: probe.packet.destination, length: bits };
  const stateless = probe.packet.connectionState === undefined;
  const again = async (subset: readonly Entry[]): Promise<string | undefined> => {
    const plan = createCompiler({ ingressDevices }).replace(subset, '0'.repeat(16));
    kernel.load(plan.text);
    settle(kernel, subset, () => false);
    const { difference: found } = compare(
      subset,
      probe,
      await kernel.send(probe.frames, probe.from),
      ingressDevices.length > 0,
      createFilterMemory(),
    );
    return found && plan.text;
  };
  let fewest = entries.filter((entry) => (isFilter(entry) || !entry.disabled) && covers(entry.dst, target));
  let text = stateless ? await again(fewest) : undefined;
  let heading = 'fewest entries, compiled afresh';
  if (stateless && text === undefined) {
    fewest = [...entries];
    text = await again(fewest);
  }
  if (text === undefined) {
    fewest = entries.filter((entry) => covers(entry.dst, target));
    heading = stateless
      ? 'NOT reproduced by the same entries compiled afresh: the way by increments matters, or what a filter remembered; entries that cover the destination'
      : 'entries that cover the destination';
    text = table;
  } else {
    for (let index = fewest.length - 1; index >= 0; index--) {
      const fewer = fewest.toSpliced(index, 1);
      const still = await again(fewer);
      if (still !== undefined) {
        fewest = fewer;
        text = still;
      }
    }
  }
  return [
    `difference: ${difference.wrong.join('; ')}`,
    `packet: ${show(probe.packet)}`,
    `frame: ${probe.frames.map((frame) => Buffer.from(frame.subarray(0, 160)).toString('hex')).join('\n       ')}`,
    `built from: ${show(probe.spec)}`,
    `meaning: ${difference.evaluation.verdict} by ${difference.evaluation.decidedBy}`,
    ...difference.evaluation.trail.map(showStep),
    `${heading} (${fewest.length}):`,
    ...fewest.map((entry) => `  ${showEntry(entry)}`),
    'nft:',
    text,
  ].join('\n');
}

function showStep(step: TrailEntry): string {
  const found = step.matched ? step.effect : step.mismatch;
  return `  ${entryOf(step).uuid}: ${found}${'why' in step ? `, ${step.why}` : ''}`;
}

export function showEntry(entry: Entry): string {
  const dst = formatPrefix(entry.dst);
  return show(isFilter(entry) ? { ...entry, dst, kind: entry.kind.name } : { ...entry, dst });
}

function show(value: object): string {
  return JSON.stringify(value, (key, each: unknown) => {
    if (typeof each !== 'bigint') return each instanceof Uint8Array ? Buffer.from(each).toString('hex') : each;
    if (key === 'value') return `0x${each.toString(16)}`;
    return formatAddress({ family: each >> 32n === 0n ? 4 : 6, value: each });
  });
}
