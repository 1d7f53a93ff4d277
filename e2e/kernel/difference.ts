/**
 * Kernel against meaning for one packet: what was expected, what happened, and, when they differ, the fewest rules
 * with which they still do, with the evaluator's trail and the nft text. Must never repair or excuse a difference.
 */
import { type Evaluation, entryOf, evaluate, type Verdict } from '@levee/core/firewall/evaluate.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import type { PacketSpec } from '@levee/lab/packet-spec.ts';
import { type KernelPath, type Observed, packetKey } from './kernel-path.ts';
import { answerToRejected } from './packet-meaning.ts';
import { covers } from './random-rules.ts';

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
  rules: readonly Rule[],
  probe: Probe,
  observed: Observed,
  ingress: boolean,
): { readonly verdict: Verdict; readonly difference?: Difference } {
  const { spec, packet } = probe;
  const evaluation = evaluate(rules, packet);
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
  const tapped = !host && (passes || !(ingress && isAskedAtIngress(rules, packet))) ? 1 : 0;
  if (passedIngress !== tapped) wrong.push(`${passedIngress} frames passed the ingress hook, expected ${tapped}`);
  const wanted = evaluation.verdict !== 'reject' ? 'none' : probe.frames.length > 1 ? 'any' : answerToRejected(spec);
  if (wanted !== 'any') {
    const got = answers.length === 0 ? 'none' : answers.join('+');
    if (got !== wanted) wrong.push(`answer ${got}, expected ${wanted}`);
  }
  const { verdict } = evaluation;
  return wrong.length === 0 ? { verdict } : { verdict, difference: { probe, evaluation, wrong } };
}

/**
 * Frames that are not the router's are never forwarded, whatever the rules say; the ingress hook looks at them only
 * where some rule is about such frames.
 */
function isAskedAtIngress(rules: readonly Rule[], packet: Packet): boolean {
  const bits = packet.family === 4 ? 32 : 128;
  return rules.some(
    (rule) =>
      !rule.disabled &&
      rule.packetType !== undefined &&
      rule.packetType !== 'host' &&
      rule.connectionState === undefined &&
      (packet.family === 4 || (rule.packetLengthBytes ?? 40) >= 40) &&
      covers(rule.dst, { family: packet.family, value: packet.destination, length: bits }),
  );
}

/**
 * Text of a difference. `rules` in the order in which the compiler came to know them. The table on the router is
 * replaced while looking for the fewest rules.
 */
export async function explainDifference(
  kernel: KernelPath,
  rules: readonly Rule[],
  difference: Difference,
  ingressDevices: readonly string[],
): Promise<string> {
  const { probe } = difference;
  const table = kernel.listRuleset();
  const bits = probe.packet.family === 4 ? 32 : 128;
  const target = { family: probe.packet.family, value: probe.packet.destination, length: bits };
  const stateless = probe.packet.connectionState === undefined;
  const again = async (subset: readonly Rule[]): Promise<string | undefined> => {
    const plan = createCompiler({ ingressDevices }).replace(subset, '0'.repeat(16));
    kernel.load(plan.text);
    const { difference: found } = compare(
      subset,
      probe,
      await kernel.send(probe.frames, probe.from),
      ingressDevices.length > 0,
    );
    return found && plan.text;
  };
  let fewest = rules.filter((rule) => !rule.disabled && covers(rule.dst, target));
  let text = stateless ? await again(fewest) : undefined;
  let heading = 'fewest rules, compiled afresh';
  if (stateless && text === undefined) {
    fewest = [...rules];
    text = await again(fewest);
  }
  if (text === undefined) {
    fewest = rules.filter((rule) => covers(rule.dst, target));
    heading = stateless
      ? 'NOT reproduced by the same rules compiled afresh: the way by increments matters; rules that cover the destination'
      : 'rules that cover the destination';
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
  const trail = evaluate(fewest, probe.packet);
  return [
    `difference: ${difference.wrong.join('; ')}`,
    `packet: ${show(probe.packet)}`,
    `frame: ${probe.frames.map((frame) => Buffer.from(frame.subarray(0, 160)).toString('hex')).join('\n       ')}`,
    `built from: ${show(probe.spec)}`,
    `meaning: ${trail.verdict} by ${trail.decidedBy}`,
    ...trail.trail.map((entry) => `  ${entryOf(entry).uuid}: ${entry.matched ? entry.effect : entry.mismatch}`),
    `${heading} (${fewest.length}):`,
    ...fewest.map((rule) => `  ${showRule(rule)}`),
    'nft:',
    text,
  ].join('\n');
}

function showRule(rule: Rule): string {
  return show({ ...rule, dst: formatPrefix(rule.dst) });
}

function show(value: object): string {
  return JSON.stringify(value, (key, each: unknown) => {
    if (typeof each !== 'bigint') return each instanceof Uint8Array ? Buffer.from(each).toString('hex') : each;
    if (key === 'value') return `0x${each.toString(16)}`;
    return formatAddress({ family: each >> 32n === 0n ? 4 : 6, value: each });
  });
}
