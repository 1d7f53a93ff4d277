/**
 * One run of kernel against meaning: random sets of rules and filters, random changes of them, random packets and flows,
 * until enough packets were sent. Everything follows from the seed.
 */

import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import { createFilterMemory, type FilterMemory } from '@levee/core/filter/memory.ts';
import { createModelRouter, isUnseen } from '@levee/core/filter/testing/model-router.ts';
import type { Verdict } from '@levee/core/firewall/evaluate.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { Random } from '@levee/lab/random.ts';
import { device } from '@levee/lab/router-path.ts';
import { type Play, playAll } from '../filters/play.ts';
import { compare, type Difference, explainDifference, type Probe, showEntry } from './difference.ts';
import { randomConversation, randomFilterPacket } from './filter-packets.ts';
import { Flow } from './flows.ts';
import type { KernelPath, Observed } from './kernel-path.ts';
import { describePacket } from './packet-meaning.ts';
import { FilterMaker } from './random-filters.ts';
import { randomPacket } from './random-packets.ts';
import { covers, RuleMaker } from './random-rules.ts';
import { settle } from './settling.ts';

export interface MeaningRun {
  packets: number;
  ruleSets: number;
  changes: number;
  flows: number;
  conversations: number;
  /** How many packets had each verdict, so that a run that tests nothing shows. */
  verdicts: Record<string, number>;
  /** What the packets were, by transport and peculiarity. */
  kinds: Record<string, number>;
  /** How many packets each kind of filter looked at, by what it did to them. */
  filtered: Record<string, number>;
  differences: number;
  /** Of the first few differences. */
  reports: string[];
}

const reportsAtMost = 3;
const flowSerialsAtMost = 65_000;
/** Conversations' clients are apart from random packets' sources and from flows'. */
const firstConversation = 0x20_0000n;
/** Clients that one vector may tell apart. */
const clientsOfOne = 16;

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
    conversations: 0,
    verdicts: {},
    kinds: {},
    filtered: {},
    differences: 0,
    reports: [],
  };
  while (run.packets < packets && run.differences === 0) await oneRuleSet(kernel, random, run);
  return run;
}

/** What is loaded, and what the router remembers of it. */
interface Loaded {
  readonly entries: Map<string, Entry>;
  readonly memory: FilterMemory;
  readonly stateful: boolean;
  readonly ingressDevices: readonly string[];
}

async function oneRuleSet(kernel: KernelPath, random: Random, run: MeaningRun): Promise<void> {
  const stateful = random.chance(0.45);
  const makers = { rules: new RuleMaker(random, { stateful }), filters: new FilterMaker(random, { stateful }) };
  const ingressDevices = random.chance(0.7) ? [device.routerOutside] : [];
  const compiler = createCompiler({ ingressDevices });
  const loaded: Loaded = { entries: new Map(), memory: createFilterMemory(), stateful, ingressDevices };
  const first: Entry[] = [
    ...makers.rules.rules(random.pick([1, 2, 4, 8, 16, 30, 60, 120])),
    ...makers.filters.filters(random.pick([0, 0, 1, 2, 4, 8, 16])),
  ];
  const whole = compiler.replace(first, mark(random));
  kernel.load(whole.text);
  whole.commit();
  begin(kernel, random, loaded, first);
  for (const entry of first) loaded.entries.set(entry.uuid, entry);
  run.ruleSets++;
  await probeAll(kernel, random, run, loaded, random.integer(150, 400));

  for (let change = random.integer(0, 6); change > 0 && run.differences === 0; change--) {
    const delta = randomDelta(random, makers, loaded.entries);
    const plan = compiler.change(delta, mark(random));
    kernel.load(plan.text);
    plan.commit();
    for (const uuid of delta.remove) {
      loaded.entries.delete(uuid);
      loaded.memory.forget(uuid);
    }
    begin(kernel, random, loaded, delta.upsert);
    for (const entry of delta.upsert) loaded.entries.set(entry.uuid, entry);
    run.changes++;
    await probeAll(kernel, random, run, loaded, random.integer(60, 160));
  }
}

/** Filters that are new, or look at other traffic than before, know nobody; some of them settle from now on. */
function begin(kernel: KernelPath, random: Random, { entries, memory }: Loaded, coming: readonly Entry[]): void {
  const fresh = coming.filter(isFilter).filter((filter) => {
    const before = entries.get(filter.uuid);
    return before === undefined || !isFilter(before) || !looksAtTheSame(before, filter);
  });
  const settling = new Set(fresh.filter(() => random.chance(0.3)).map(({ uuid }) => uuid));
  settle(kernel, fresh, ({ uuid }) => settling.has(uuid));
  for (const filter of fresh) {
    memory.forget(filter.uuid);
    if (settling.has(filter.uuid)) memory.begin(filter);
  }
}

function looksAtTheSame(a: Filter, b: Filter): boolean {
  return a.destinationPorts?.start === b.destinationPorts?.start && a.destinationPorts?.end === b.destinationPorts?.end;
}

interface Makers {
  readonly rules: RuleMaker;
  readonly filters: FilterMaker;
}

function randomDelta(random: Random, makers: Makers, entries: ReadonlyMap<string, Entry>) {
  const existing = [...entries.values()];
  const some = (most: number): Entry[] =>
    existing.length === 0 ? [] : Array.from({ length: random.integer(0, most) }, () => random.pick(existing));
  const remove = new Set(some(random.chance(0.1) ? existing.length : 3).map((entry) => entry.uuid));
  const upsert = new Map<string, Entry>();
  for (const entry of some(4)) {
    if (remove.has(entry.uuid)) continue;
    upsert.set(entry.uuid, isFilter(entry) ? makers.filters.changed(entry) : makers.rules.changed(entry));
  }
  for (const rule of makers.rules.rules(random.integer(0, 4))) upsert.set(rule.uuid, rule);
  for (const filter of makers.filters.filters(random.integer(0, 2))) upsert.set(filter.uuid, filter);
  return { upsert: [...upsert.values()], remove: [...remove] };
}

async function probeAll(
  kernel: KernelPath,
  random: Random,
  run: MeaningRun,
  loaded: Loaded,
  count: number,
): Promise<void> {
  const present = [...loaded.entries.values()];
  const rules = present.filter((entry): entry is Rule => !isFilter(entry));
  const filters = present.filter(isFilter);
  const ingress = loaded.ingressDevices.length > 0;
  const probes: Probe[] = [];
  for (let id = 1; id <= count; id++) {
    const aimed =
      filters.length > 0 && random.chance(0.5) ? randomFilterPacket(random, random.pick(filters), id) : undefined;
    const spec = aimed ?? randomPacket(random, rules, id, ingress);
    probes.push({ spec, packet: describePacket(spec), frames: [buildFrame(spec)], from: 'attacker' });
  }
  const observed = await kernel.send(probes.flatMap((probe) => probe.frames));
  const differences: Difference[] = [];
  for (const probe of probes) note(run, differences, present, probe, observed, loaded);
  if (loaded.stateful && run.flows < flowSerialsAtMost) {
    await playFlows(kernel, random, run, present, loaded, differences);
    await playConversations(kernel, random, run, present, loaded);
  }
  run.differences += differences.length;
  for (const difference of differences.slice(0, reportsAtMost - run.reports.length)) {
    run.reports.push(await explainDifference(kernel, present, difference, loaded.ingressDevices));
  }
}

/** All flows' first steps, then all their second ones, …: within a flow the order is what the model says. */
async function playFlows(
  kernel: KernelPath,
  random: Random,
  run: MeaningRun,
  entries: readonly Entry[],
  loaded: Loaded,
  differences: Difference[],
): Promise<void> {
  const flows = Array.from({ length: 24 }, (_, index) => new Flow(random, index + 1, ++run.flows, entries));
  for (const number of [0, 1, 2, 3, 4] as const) {
    const steps = flows.flatMap((flow) => flow.step(number) ?? []);
    if (steps.length === 0) continue;
    const from = number === 2 ? 'customer' : 'attacker';
    const observed = await kernel.send(
      steps.flatMap((step) => step.frames),
      from,
    );
    for (const step of steps) {
      const kept = from === 'attacker' && isUnseen(entries, step.packet);
      const packet: Packet = kept ? { ...step.packet, connectionState: 'new' } : step.packet;
      const verdict = note(run, differences, entries, { ...step, packet }, observed, loaded);
      // Of what conntrack does not see it keeps no entry.
      if (!kept) step.flow.settle(number, verdict);
    }
  }
}

/** What kinds' vectors hold, between clients of their own and hosts where connections are looked at. */
async function playConversations(
  kernel: KernelPath,
  random: Random,
  run: MeaningRun,
  entries: readonly Entry[],
  { memory }: Loaded,
): Promise<void> {
  const filters = entries.filter(isFilter);
  if (filters.length === 0) return;
  const router = createModelRouter(entries, memory);
  const plays = Array.from({ length: 16 }, (): Play => {
    const filter = random.pick(filters);
    const before = firstConversation + BigInt(++run.conversations * clientsOfOne);
    return { says: `a conversation of ${filter.kind.name}`, router, turns: randomConversation(random, filter, before) };
  });
  const { packets, outcomes, differences } = await playAll(kernel, plays);
  run.packets += packets;
  for (const [outcome, count] of Object.entries(outcomes)) add(run.verdicts, `conversation ${outcome}`, count);
  run.differences += differences.length;
  for (const { packet, text } of differences.slice(0, reportsAtMost - run.reports.length)) {
    const met = entries.filter((entry) =>
      [packet.source, packet.destination].some((value) => {
        const { family } = packet;
        return covers(entry.dst, { family, value, length: family === 4 ? 32 : 128 });
      }),
    );
    run.reports.push([text, ...met.map(showEntry), kernel.listRuleset()].join('\n'));
  }
}

function note(
  run: MeaningRun,
  differences: Difference[],
  entries: readonly Entry[],
  probe: Probe,
  observed: Observed,
  { ingressDevices, memory }: Loaded,
): Verdict {
  const { difference, evaluation } = compare(entries, probe, observed, ingressDevices.length > 0, memory);
  const { decidedBy, trail, verdict } = evaluation;
  run.packets++;
  add(run.verdicts, verdict);
  add(run.kinds, probe.spec.transport.kind);
  if (probe.spec.fragment || probe.frames.length > 1) add(run.kinds, 'fragment');
  if (probe.spec.extensions) add(run.kinds, 'extension headers');
  if (probe.packet.packetType !== 'host') add(run.kinds, probe.packet.packetType);
  if (probe.packet.connectionState) add(run.kinds, probe.packet.connectionState);
  for (const step of trail) {
    if ('filter' in step && step.matched) add(run.filtered, `${step.filter.kind.name} ${step.effect}`);
  }
  if (decidedBy === 'default' && trail.length === 0) add(run.kinds, 'without rule or filter');
  if (difference) differences.push(difference);
  return verdict;
}

function add(counts: Record<string, number>, key: string, count = 1): void {
  counts[key] = (counts[key] ?? 0) + count;
}

function mark(random: Random): string {
  return random.bits(64).toString(16).padStart(16, '0');
}
