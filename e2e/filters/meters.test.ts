/**
 * Each meter of each kind in the kernel: it counts what the evaluator says that it counts, and what is above it is discarded.
 * Every packet of the vectors that passes is the last that a meter has room for. Then it is sent again, or where the meter
 * is of the destination, all that led to it once more by another client.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import type { FilterKind, KindMeter } from '@levee/core/filter/filter-kind.ts';
import type { FilterVector } from '@levee/core/filter/filter-vector.ts';
import { createFilterMemory, type FilterMemory } from '@levee/core/filter/memory.ts';
import { createModelRouter } from '@levee/core/filter/testing/model-router.ts';
import {
  clientAddress,
  familiesOf,
  packetOf,
  vectorFilter,
  withWideMeters,
} from '@levee/core/filter/testing/vector-run.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { KernelPath } from '../kernel/kernel-path.ts';
import { settle } from '../kernel/settling.ts';
import { type Play, playAll, type Turn } from './play.ts';

const skip = labObstacle() ?? false;
const destinations: Readonly<Record<Family, bigint>> = { 4: 0x0a100000n, 6: 0x20010db8n << 96n };
/** Clients of one vector. */
const room = 16n;
/** In a second a meter has room for one packet more: a run that took longer says nothing. */
const mostSeconds = 0.9;

interface Case {
  readonly meter: KindMeter;
  readonly vector: FilterVector;
  readonly filter: Filter;
  readonly turns: readonly Turn[];
}

let kernel: KernelPath;
before(() => {
  if (!skip) kernel = new KernelPath('meters');
});
after(() => kernel?.remove());

for (const kind of filterKinds) {
  const { enforcement } = kind;
  if (enforcement.meters.length === 0) continue;
  test(`${kind.name}: what is above a meter is discarded, whatever the meter counts`, { skip }, async () => {
    const cases = casesOf(kind);
    for (let tries = 1; ; tries++) {
      const { differences, above, seconds } = await run(cases);
      if (differences.length === 0) {
        // Those that a SYN proxy opens are counted by the router itself.
        const named = enforcement.meters.filter(({ name }) => name !== enforcement.openings?.meter);
        assert.deepEqual(
          named.filter(({ name }) => !above.has(name)).map(({ name }) => name),
          [],
          'no packet was above those',
        );
        return;
      }
      assert.ok(seconds > mostSeconds && tries < 5, `in ${seconds} s: ${differences.slice(0, 5).join('\n\n')}`);
    }
  });
}

/** `above`: names of the meters that some packet was above. */
async function run(
  cases: readonly Case[],
): Promise<{ differences: string[]; above: ReadonlySet<string>; seconds: number }> {
  const filters = cases.map(({ filter }) => filter);
  kernel.load(createCompiler().replace(filters, '0123456789abcdef').text);
  const settling = new Set(cases.filter(({ vector }) => vector.settling).map(({ filter }) => filter.uuid));
  settle(kernel, filters, ({ uuid }) => settling.has(uuid));
  const above = new Set<string>();
  const plays = cases.map(({ meter, vector, filter, turns }): Play => {
    const memory = memoryOf(vector, filter);
    const watched: FilterMemory = {
      ...memory,
      withinMeter(of, by, packet) {
        const within = memory.withinMeter(of, by, packet);
        if (!within) above.add(by.name);
        return within;
      },
    };
    return { says: `${meter.name}: ${vector.says}`, router: createModelRouter([filter], watched), turns };
  });
  const began = performance.now();
  const { differences } = await playAll(kernel, plays);
  const seconds = (performance.now() - began) / 1000;
  return { differences: differences.map(({ text }) => text), above, seconds };
}

/** Each packet that passes, with each meter that counts it. The families take turns. */
function casesOf(kind: FilterKind): Case[] {
  const cases: Case[] = [];
  for (const vector of kind.enforcement.vectors) {
    for (const [index, step] of vector.steps.entries()) {
      if (step.from !== 'client' || step.expect !== 'pass') continue;
      for (const meter of kind.enforcement.meters) {
        const number = cases.length + 1;
        const families = familiesOf(kind, vector);
        const family = families[number % families.length] as Family;
        const wide = withWideMeters(
          vectorFilter(kind, { family, value: destinations[family] + BigInt(number) }, number),
        );
        const stepsOf = (more: bigint): Turn[] =>
          vector.steps.slice(0, index + 1).map((each) => ({
            from: each.from,
            packet: packetOf(each, wide, clientAddress(family, more + BigInt(each.client ?? 1))),
          }));
        const once = stepsOf(0n);
        const charges = chargesOf(vector, wide, once, meter);
        if (charges === 0) continue;
        const last = once.slice(index);
        const turns = [...once, ...(meter.of === 'source' ? [...last, ...last] : stepsOf(room))];
        cases.push({ meter, vector, filter: withNarrowMeter(wide, meter, charges), turns });
      }
    }
  }
  return cases;
}

function memoryOf(vector: FilterVector, filter: Filter): FilterMemory {
  const memory = createFilterMemory();
  if (vector.settling) memory.begin(filter);
  return memory;
}

/** How often the last packet's meter counts until then, itself included; 0 when it does not count the last one. */
function chargesOf(vector: FilterVector, filter: Filter, turns: readonly Turn[], meter: KindMeter): number {
  const last = turns.at(-1)?.packet;
  let charges = 0;
  let chargesLast = false;
  const memory: FilterMemory = {
    ...memoryOf(vector, filter),
    withinMeter(_, { name, of }, packet) {
      if (name !== meter.name) return true;
      if (of === 'destination' || packet.source === last?.source) charges += 1;
      chargesLast = true;
      return true;
    },
  };
  const router = createModelRouter([filter], memory);
  for (const { from, packet } of turns) {
    chargesLast = false;
    router.route(packet, from === 'client');
  }
  return chargesLast ? charges : 0;
}

function withNarrowMeter(filter: Filter, { name }: KindMeter, burst: number): Filter {
  const { kind } = filter;
  const meters = kind.enforcement.meters.map((each) =>
    each.name === name ? { ...each, packetsPerSecond: 1, burst } : each,
  );
  return { ...filter, kind: { ...kind, enforcement: { ...kind.enforcement, meters } } };
}
