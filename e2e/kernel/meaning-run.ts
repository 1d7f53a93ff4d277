/**
 * One run of kernel against meaning: random rule sets, random changes of them, random packets and flows, until enough
 * packets were sent. Everything follows from the seed.
 */
import type { Verdict } from '@levee/core/firewall/evaluate.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { device } from '@levee/lab/router-path.ts';
import { compare, type Difference, explainDifference, type Probe } from './difference.ts';
import { Flow } from './flows.ts';
import type { KernelPath, Observed } from './kernel-path.ts';
import { describePacket } from './packet-meaning.ts';
import { Random } from './random.ts';
import { randomPacket } from './random-packets.ts';
import { RuleMaker } from './random-rules.ts';

export interface MeaningRun {
  packets: number;
  ruleSets: number;
  changes: number;
  flows: number;
  /** How many packets had each verdict, so that a run that tests nothing shows. */
  verdicts: Record<string, number>;
  /** What the packets were, by transport and peculiarity. */
  kinds: Record<string, number>;
  differences: number;
  /** Of the first few differences. */
  reports: string[];
}

const reportsAtMost = 3;
const flowSerialsAtMost = 65_000;

export function chosenSeed(): string {
  return process.env.LEVEE_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
}

/** Ends at the first rule set with a difference. */
export async function holdKernelToMeaning(kernel: KernelPath, seed: string, packets: number): Promise<MeaningRun> {
  const random = new Random(seed);
  const run: MeaningRun = {
    packets: 0,
    ruleSets: 0,
    changes: 0,
    flows: 0,
    verdicts: {},
    kinds: {},
    differences: 0,
    reports: [],
  };
  while (run.packets < packets && run.differences === 0) await oneRuleSet(kernel, random, run);
  return run;
}

async function oneRuleSet(kernel: KernelPath, random: Random, run: MeaningRun): Promise<void> {
  const stateful = random.chance(0.45);
  const maker = new RuleMaker(random, { stateful });
  const ingressDevices = random.chance(0.7) ? [device.routerOutside] : [];
  const compiler = createCompiler({ ingressDevices });
  const rules = new Map(maker.rules(random.pick([1, 2, 4, 8, 16, 30, 60, 120])).map((rule) => [rule.uuid, rule]));
  const whole = compiler.replace(rules.values(), mark(random));
  kernel.load(whole.text);
  whole.commit();
  run.ruleSets++;
  await probeAll(kernel, random, rules, { run, stateful, ingressDevices }, random.integer(150, 400));

  for (let change = random.integer(0, 6); change > 0 && run.differences === 0; change--) {
    const delta = randomDelta(random, maker, rules);
    const plan = compiler.change(delta, mark(random));
    kernel.load(plan.text);
    plan.commit();
    for (const uuid of delta.remove) rules.delete(uuid);
    for (const rule of delta.upsert) rules.set(rule.uuid, rule);
    run.changes++;
    await probeAll(kernel, random, rules, { run, stateful, ingressDevices }, random.integer(60, 160));
  }
}

function randomDelta(random: Random, maker: RuleMaker, rules: ReadonlyMap<string, Rule>) {
  const existing = [...rules.values()];
  const some = (most: number): Rule[] =>
    existing.length === 0 ? [] : Array.from({ length: random.integer(0, most) }, () => random.pick(existing));
  const remove = new Set(some(random.chance(0.1) ? existing.length : 3).map((rule) => rule.uuid));
  const upsert = new Map<string, Rule>();
  for (const rule of some(4)) if (!remove.has(rule.uuid)) upsert.set(rule.uuid, maker.changed(rule));
  for (const rule of maker.rules(random.integer(0, 4))) upsert.set(rule.uuid, rule);
  return { upsert: [...upsert.values()], remove: [...remove] };
}

async function probeAll(
  kernel: KernelPath,
  random: Random,
  rules: ReadonlyMap<string, Rule>,
  round: { readonly run: MeaningRun; readonly stateful: boolean; readonly ingressDevices: readonly string[] },
  count: number,
): Promise<void> {
  const { run, stateful, ingressDevices } = round;
  const present = [...rules.values()];
  const probes: Probe[] = [];
  for (let id = 1; id <= count; id++) {
    const spec = randomPacket(random, present, id, ingressDevices.length > 0);
    probes.push({ spec, packet: describePacket(spec), frames: [buildFrame(spec)], from: 'attacker' });
  }
  const observed = await kernel.send(probes.flatMap((probe) => probe.frames));
  const differences: Difference[] = [];
  for (const probe of probes) note(run, differences, present, probe, observed, ingressDevices);
  if (stateful && run.flows < flowSerialsAtMost) await playFlows(kernel, random, present, round, differences);
  run.differences += differences.length;
  for (const difference of differences.slice(0, reportsAtMost - run.reports.length)) {
    run.reports.push(await explainDifference(kernel, present, difference, ingressDevices));
  }
}

/** All flows' first steps, then all their second ones, …: within a flow the order is what the model says. */
async function playFlows(
  kernel: KernelPath,
  random: Random,
  rules: readonly Rule[],
  { run, ingressDevices }: Parameters<typeof probeAll>[3],
  differences: Difference[],
): Promise<void> {
  const flows = Array.from({ length: 24 }, (_, index) => new Flow(random, index + 1, ++run.flows, rules));
  for (const number of [0, 1, 2, 3, 4] as const) {
    const steps = flows.flatMap((flow) => flow.step(number) ?? []);
    if (steps.length === 0) continue;
    const from = number === 2 ? 'customer' : 'attacker';
    const observed = await kernel.send(
      steps.flatMap((step) => step.frames),
      from,
    );
    for (const step of steps) step.flow.settle(number, note(run, differences, rules, step, observed, ingressDevices));
  }
}

function note(
  run: MeaningRun,
  differences: Difference[],
  rules: readonly Rule[],
  probe: Probe,
  observed: Observed,
  ingressDevices: readonly string[],
): Verdict {
  const { difference, verdict } = compare(rules, probe, observed, ingressDevices.length > 0);
  run.packets++;
  add(run.verdicts, verdict);
  add(run.kinds, probe.spec.transport.kind);
  if (probe.spec.fragment || probe.frames.length > 1) add(run.kinds, 'fragment');
  if (probe.spec.extensions) add(run.kinds, 'extension headers');
  if (probe.packet.packetType !== 'host') add(run.kinds, probe.packet.packetType);
  if (probe.packet.connectionState) add(run.kinds, probe.packet.connectionState);
  if (difference) differences.push(difference);
  return verdict;
}

function add(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

function mark(random: Random): string {
  return random.bits(64).toString(16).padStart(16, '0');
}
