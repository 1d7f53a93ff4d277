/**
 * Packets a second through a router with each kind of filter against none: the traffic that the kind is for, and a flood
 * of junk; then questions to ten thousand destinations with a hundred thousand rules, a thousand of them with a filter.
 *
 * Each way is measured with the very same frames with no table and with the filter, in turn; each has its fastest round.
 * Sender and router share one processor, sending included: the ratios are what counts. What a filter discards is not sent
 * on to the customer, so that a flood may well go faster through a filter than without one.
 *
 * npm run bench -- filters [seconds a measurement = 0.5] [rounds = 3]
 */
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import { familiesOf, packetOf, vectorFilter } from '@levee/core/filter/testing/vector-run.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { filterSet, tableName } from '@levee/core/nftables/names.ts';
import { proxiedFlowsTable } from '@levee/core/nftables/proxied-flows.ts';
import { startFlood } from '@levee/lab/flood.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';
import { Conversation } from '../e2e/filters/conversation.ts';
import { destinationOf, destinations, manyRules, protectedPrefixes } from './packets/many-rules.ts';

const [secondsText = '0.5', roundsText = '3'] = process.argv.slice(2);
const seconds = Number(secondsText);
const rounds = Number(roundsText);
/** So many that none reaches the limits on a source. */
const clients = 30_000;
const forgedSources = 16_384;
const junkOctets = 64;
const filteredDestinations = 1_000;
const mark = '0'.repeat(16);
const firstClient = 0x64400001n;

/** The table that outlives SYN proxies too: it has the kernel track what passes without any filter. */
const nothingLeft = [tableName, proxiedFlowsTable]
  .map((table) => `add table inet ${table}\ndelete table inet ${table}\n`)
  .join('');

interface Way {
  readonly name: string;
  readonly frames: readonly Uint8Array[];
  /** Without and with what is measured; undefined: no table at all. */
  readonly texts: { readonly without: string | undefined; readonly with: string };
}

interface Rates {
  without: number;
  with: number;
  /** Of the packets with it, how many reached the customer: 0 to 1. */
  passed: number;
}

using path = new RouterPath({ protectedPrefixes, label: 'filters' });
console.log(`fastest of ${rounds} rounds of ${seconds} s, thousands of packets a second`);
console.log(
  `${''.padEnd(34)}${'without'.padStart(10)}${'with'.padStart(8)}${'ratio'.padStart(8)}${'passed'.padStart(9)}`,
);
for (const kind of filterKinds) {
  for (const way of waysOf(kind)) await show(way);
}
for (const way of largeWays()) await show(way);

async function show(way: Way): Promise<void> {
  const rates: Rates = { without: 0, with: 0, passed: 0 };
  for (let round = 0; round < rounds; round++) {
    for (const which of ['without', 'with'] as const) {
      const text = way.texts[which];
      if (text !== undefined) path.router.loadNft(text);
      const { taken, passed } = await measure(way.frames);
      if (taken > rates[which]) {
        rates[which] = taken;
        if (which === 'with') rates.passed = passed;
      }
      if (text !== undefined) path.router.loadNft(nothingLeft);
    }
  }
  const thousands = (rate: number) => Math.round(rate / 1000).toLocaleString('en-US');
  const ratio = (rates.with / rates.without).toFixed(2);
  const share = `${(100 * rates.passed).toFixed(0)} %`;
  console.log(
    `${way.name.padEnd(34)}${thousands(rates.without).padStart(10)}${thousands(rates.with).padStart(8)}${ratio.padStart(8)}${share.padStart(9)}`,
  );
}

/** Packets a second that the router took; what it could not take was lost on the way in. */
async function measure(frames: readonly Uint8Array[]): Promise<{ taken: number; passed: number }> {
  const counters = () => {
    const { receivedPackets, receiveDropped } = path.router.deviceCounters(device.routerOutside);
    return {
      taken: receivedPackets - receiveDropped,
      arrived: path.customer.deviceCounters(device.customer).receivedPackets,
    };
  };
  const before = counters();
  const flood = { namespace: path.attacker.name, device: device.attacker, frames, seconds };
  const result = await startFlood(flood).finished;
  const after = counters();
  const taken = after.taken - before.taken;
  return { taken: taken / result.seconds, passed: (after.arrived - before.arrived) / taken };
}

function waysOf(kind: FilterKind): readonly Way[] {
  const vectors = kind.enforcement.vectors.filter((each) => familiesOf(kind, each).includes(4));
  // Nobody answers here: a vector in which the server speaks shows less, and is taken where there is no other.
  const vector =
    vectors.find(({ steps }) => steps.every(({ from, expect }) => from === 'client' && expect === 'pass')) ??
    vectors.find(({ steps }) => steps.some(({ from, expect }) => from === 'client' && expect !== 'discard'));
  if (vector === undefined) return [];
  const filter = vectorFilter(kind, { family: 4, value: destinationOf(4, 0) }, 1);
  const steps = vector.steps.filter(({ from }) => from === 'client');
  const good = Array.from({ length: clients }, (_, client) =>
    steps.map((step) => packetOf(step, filter, firstClient + BigInt(client * 8 + (step.client ?? 1)))),
  ).flat();
  const texts = { without: undefined, with: textOf([filter]) };
  return [
    { name: `${kind.name}, its own traffic`, frames: framesOf(good), texts },
    { name: `${kind.name}, junk`, frames: framesOf(junkOf(filter, good[0] as Packet)), texts },
  ];
}

/** Random octets from forged sources to where the good traffic goes. */
function junkOf(filter: Filter, like: Packet): Packet[] {
  return Array.from({ length: forgedSources }, (_, index) => ({
    ...like,
    source: firstClient + BigInt(index * 3),
    payload: Uint8Array.from(
      { length: junkOctets },
      (_, at) => (Math.imul(index + 1, 2_654_435_761) >>> (at % 24)) & 255,
    ),
    totalLengthBytes: 20 + (like.tcpFlags === undefined ? 8 : 20) + junkOctets,
    ...(like.tcpFlags !== undefined && { tcpFlags: 0x18 }),
    destination: filter.dst.value,
  }));
}

function largeWays(): readonly Way[] {
  const dns = filterKinds.find(({ name }) => name === 'dns');
  const question = dns?.enforcement.vectors[0]?.steps[0];
  if (dns === undefined || question === undefined) throw new Error('there is no kind dns to measure with');
  const rules = manyRules(4);
  const filterOf = (index: number) =>
    vectorFilter(dns, { family: 4, value: destinationOf(4, index) }, rules.length + index);
  const filters = Array.from({ length: filteredDestinations }, (_, index) =>
    filterOf((index * destinations) / filteredDestinations),
  );
  const frames = framesOf(
    Array.from({ length: destinations }, (_, index) =>
      packetOf(question, filterOf(index), firstClient + BigInt(index)),
    ),
  );
  const rulesAlone = createCompiler().replace(rules, mark).text;
  const both = createCompiler().replace([...rules, ...filters], mark).text;
  return [
    { name: '100 000 rules', frames, texts: { without: undefined, with: rulesAlone } },
    { name: '1 000 filters among 100 000 rules', frames, texts: { without: rulesAlone, with: both } },
  ];
}

/** As it is when the filters have settled. */
function textOf(filters: readonly Filter[]): string {
  const settled = filters
    .filter(({ kind }) => kind.enforcement.settles)
    .map(({ uuid }) => `flush set inet levee ${filterSet('settling', uuid)}\n`);
  return createCompiler().replace(filters, mark).text + settled.join('');
}

function framesOf(packets: readonly Packet[]): Uint8Array[] {
  const conversation = new Conversation();
  return packets.map((packet, index) => buildFrame(conversation.spec(packet, 'client', index & 0xffff)));
}
