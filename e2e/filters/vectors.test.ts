/**
 * Every kind's vectors through a real router, and then their neighbours: the evaluator and the kernel have to agree on
 * each packet. Each vector has a destination and a filter of its own, each neighbour a client of its own.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import type { FilterVector } from '@levee/core/filter/filter-vector.ts';
import { createFilterMemory } from '@levee/core/filter/memory.ts';
import { createModelRouter, type ModelRouter } from '@levee/core/filter/testing/model-router.ts';
import {
  clientAddress,
  familiesOf,
  packetOf,
  vectorFilter,
  withRoomForOne,
  withWideMeters,
} from '@levee/core/filter/testing/vector-run.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { labObstacle } from '@levee/lab/namespace.ts';
import { Random } from '@levee/lab/random.ts';
import { KernelPath } from '../kernel/kernel-path.ts';
import { chosenSeed } from '../kernel/meaning-run.ts';
import { settle } from '../kernel/settling.ts';
import { bitsTurned, neighboursOf } from './neighbours.ts';
import { type Play, playAll, type Turn } from './play.ts';

const skip = labObstacle() ?? false;
const mark = '0123456789abcdef';
const destinations: Readonly<Record<Family, bigint>> = { 4: 0x0a100000n, 6: 0x20010db8n << 96n };
/** Of each packet of a client, in each family, at random. */
const neighboursOfEach = 8;
/** Of so many packets of each kind that pass, in one family, each bit of the first octets is turned. */
const [searched, searchedOctets] = [4, 12];
/** Clients of one play. */
const room = 16n;

interface Placed {
  readonly kind: FilterKind;
  readonly vector: FilterVector;
  readonly filter: Filter;
}

/** `LEVEE_KINDS`: names of those to look at alone. */
function placeAll(): Placed[] {
  const wanted = process.env.LEVEE_KINDS?.split(',');
  const kinds = filterKinds.filter(({ name }) => wanted?.includes(name) ?? true);
  let number = 0;
  return kinds.flatMap((kind) =>
    kind.enforcement.vectors.flatMap((vector) =>
      familiesOf(kind, vector).map((family) => {
        number += 1;
        return {
          kind,
          vector,
          filter: vectorFilter(kind, { family, value: destinations[family] + BigInt(number) }, number),
        };
      }),
    ),
  );
}

function load(kernel: KernelPath, placed: readonly Placed[], change: (filter: Filter) => Filter): Placed[] {
  const present = placed.map((each) => ({ ...each, filter: change(each.filter) }));
  kernel.load(
    createCompiler().replace(
      present.map(({ filter }) => filter),
      mark,
    ).text,
  );
  const settling = new Set(present.filter(({ vector }) => vector.settling).map(({ filter }) => filter.uuid));
  settle(
    kernel,
    present.map(({ filter }) => filter),
    ({ uuid }) => settling.has(uuid),
  );
  return present;
}

function modelOf({ vector, filter }: Placed): ModelRouter {
  const memory = createFilterMemory();
  if (vector.settling) memory.begin(filter);
  return createModelRouter([filter], memory);
}

/** `before`: so many clients have been. */
function turnsOf({ vector, filter }: Placed, before: bigint): Turn[] {
  return vector.steps.map((step) => ({
    from: step.from,
    packet: packetOf(step, filter, clientAddress(filter.dst.family, before + BigInt(step.client ?? 1))),
    expect: step.expect,
  }));
}

async function withKernel(label: string, use: (kernel: KernelPath) => Promise<void>): Promise<void> {
  const kernel = new KernelPath(label);
  try {
    await use(kernel);
  } finally {
    kernel.remove();
  }
}

test('the kernel does to every packet of every vector what the vector says', { skip }, async (t) => {
  await withKernel('vectors', async (kernel) => {
    const placed = load(kernel, placeAll(), (filter) => filter);
    const plays = placed.map((each): Play => {
      const { vector } = each;
      const turns = turnsOf(each, 0n);
      return { says: `${each.kind.name}: ${vector.says}`, router: modelOf(each), turns };
    });
    const report = await playAll(kernel, plays);
    t.diagnostic(JSON.stringify({ vectors: plays.length, packets: report.packets, outcomes: report.outcomes }));
    assert.equal(report.differences.length, 0, report.differences.map(({ text }) => text).join('\n\n'));
    assert.ok(report.outcomes.pass > 0 && report.outcomes.discard > 0);
  });
});

test('where no more can be remembered or told apart, the kernel does to newcomers what the evaluator says', {
  skip,
}, async (t) => {
  await withKernel('full', async (kernel) => {
    const placed = load(kernel, placeAll(), (filter) => withRoomForOne(withWideMeters(filter)));
    const plays = placed.flatMap((each): Play[] => {
      const { kind, vector } = each;
      const router = modelOf(each);
      return [0n, room].map((more) => {
        const turns = turnsOf(each, more).map(({ from, packet }) => ({ from, packet }));
        return { says: `${kind.name}: ${vector.says}, by a second one`, router, turns };
      });
    });
    const report = await playAll(kernel, plays);
    t.diagnostic(JSON.stringify({ plays: plays.length, packets: report.packets, outcomes: report.outcomes }));
    assert.equal(report.differences.length, 0, report.differences.map(({ text }) => text).join('\n\n'));
  });
});

test('the kernel does to the neighbours of every packet what the evaluator says', { skip }, async (t) => {
  const seed = chosenSeed();
  t.diagnostic(`seed ${seed} (LEVEE_SEED=${seed} repeats this run)`);
  const random = new Random(seed);
  await withKernel('neighbours', async (kernel) => {
    const placed = load(kernel, placeAll(), withWideMeters);
    const left = new Map(placed.map(({ kind }) => [kind, searched]));
    const plays = placed.flatMap((each) => {
      const { kind, vector, filter } = each;
      const router = modelOf(each);
      let client = 0n;
      return vector.steps.flatMap((step, index) => {
        if (step.from === 'server') return [];
        const address = clientAddress(filter.dst.family, client + BigInt(step.client ?? 1));
        const payload = packetOf(step, filter, address).payload ?? new Uint8Array();
        const neighbours = neighboursOf(payload, random, neighboursOfEach);
        const toSearch = left.get(kind) ?? 0;
        if (step.expect === 'pass' && toSearch > 0 && payload.length > 0 && random.chance(0.5)) {
          left.set(kind, toSearch - 1);
          neighbours.push(...bitsTurned(payload, searchedOctets));
        }
        return neighbours.map((neighbour): Play => {
          client += room;
          const turns = turnsOf(each, client).slice(0, index + 1);
          const last = turns[index] as Turn;
          return {
            says: `${kind.name}: ${vector.says}, its last packet's payload ${Buffer.from(neighbour).toString('hex')}`,
            router,
            turns: [...turns.slice(0, index), { from: 'client', packet: withPayload(last.packet, neighbour) }],
          };
        });
      });
    });
    const report = await playAll(kernel, plays);
    t.diagnostic(JSON.stringify({ neighbours: plays.length, packets: report.packets, outcomes: report.outcomes }));
    const shown = report.differences
      .slice(0, 20)
      .map(({ text }) => text)
      .join('\n\n');
    assert.equal(report.differences.length, 0, `LEVEE_SEED=${seed}: ${report.differences.length}\n${shown}`);
    assert.ok(report.outcomes.pass > 0 && report.outcomes.discard > 0);
  });
});

function withPayload(packet: Packet, payload: Uint8Array): Packet {
  const longer = payload.length - (packet.payload?.length ?? 0);
  return { ...packet, payload, totalLengthBytes: (packet.totalLengthBytes ?? 0) + longer };
}
