/**
 * Packets a second through a router: no rules, 100 000 compiled rules over 10 000 destinations, and the same rules as
 * one chain, as a script would write them.
 *
 * The table is that of a Levee that was told nothing: no ingress devices. Every destination has ten rules of its own,
 * none of which the packets match: each packet pays for its whole chain, and the destinations come in turn, so that
 * neither map nor chain is in the processor's cache. Sender, router and customer share one processor (the kernel
 * forwards in the sender's context): the figure is the whole path's, sending included; the ratios are what counts.
 * The ways are measured in turn, and each has its fastest round: what else the machine does only ever slows one down.
 *
 * npm run bench -- packets [seconds a measurement = 2] [rounds = 5]
 */
import { formatAddress } from '@levee/core/net/address.ts';
import { createCompiler } from '@levee/core/nftables/compiler.ts';
import { startFlood } from '@levee/lab/flood.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { device, hardwareAddress, RouterPath } from '@levee/lab/router-path.ts';
import {
  destinationOf,
  destinations,
  manyRules,
  portOf,
  protectedPrefixes,
  rulesPerDestination,
} from './packets/many-rules.ts';

const [secondsText = '2', roundsText = '5'] = process.argv.slice(2);
const seconds = Number(secondsText);
const rounds = Number(roundsText);

type Family = 4 | 6;

interface Way {
  readonly name: string;
  readonly family: Family;
  readonly target?: { readonly of: string; readonly least: number };
  /** Undefined: no table at all. */
  readonly text: (() => string) | undefined;
}

const ways: Way[] = [
  { name: 'no rules, IPv4', family: 4, text: undefined },
  { name: 'compiled, IPv4', family: 4, text: () => compiledText(4), target: { of: 'no rules, IPv4', least: 0.7 } },
  { name: 'no rules, IPv6', family: 6, text: undefined },
  { name: 'compiled, IPv6', family: 6, text: () => compiledText(6), target: { of: 'no rules, IPv6', least: 0.7 } },
  { name: 'one chain, IPv4', family: 4, text: () => linearText() },
];

const rates = new Map<string, number[]>(ways.map((way) => [way.name, []]));
using path = new RouterPath({ protectedPrefixes, label: 'packets' });
for (let round = 1; round <= rounds; round++) {
  for (const way of ways) {
    const text = way.text?.();
    if (text !== undefined) path.router.loadNft(text);
    const rate = await measure(way.family);
    rates.get(way.name)?.push(rate);
    process.stderr.write(`round ${round}: ${way.name.padEnd(16)} ${Math.round(rate).toLocaleString('en-US')}/s\n`);
    if (text !== undefined) path.router.loadNft('delete table inet levee\n');
  }
}
print();

async function measure(family: Family): Promise<number> {
  const before = path.customer.deviceCounters(device.customer).receivedPackets;
  const result = await startFlood({
    namespace: path.attacker.name,
    device: device.attacker,
    frames: framesTo(family),
    seconds,
  }).finished;
  const delivered = path.customer.deviceCounters(device.customer).receivedPackets - before;
  // What the router could not take was lost on the way in: only what arrived was carried.
  return delivered / result.seconds;
}

function print(): void {
  console.log(
    `\n${destinations * rulesPerDestination} rules, ${destinations} destinations; fastest of ${rounds} rounds of ${seconds} s`,
  );
  for (const way of ways) {
    const rate = fastest(way.name);
    const { target } = way;
    const ratio = target ? ratioOf(way.name, target.of) : 1;
    const note = target
      ? `   ${ratio.toFixed(2)} of ${target.of} (target: at least ${target.least}: ${ratio >= target.least ? 'met' : 'MISSED'})`
      : '';
    console.log(`${way.name.padEnd(18)}${Math.round(rate).toLocaleString('en-US').padStart(12)} packets/s${note}`);
  }
  const times = ratioOf('compiled, IPv4', 'one chain, IPv4');
  console.log(
    `compiled against one chain: ${times.toFixed(0)} times (target: at least 300: ${times >= 300 ? 'met' : 'MISSED'})`,
  );
}

function ratioOf(name: string, rival: string): number {
  return fastest(name) / fastest(rival);
}

function fastest(name: string): number {
  return Math.max(...(rates.get(name) ?? []));
}

function framesTo(family: Family): Uint8Array[] {
  return Array.from({ length: destinations }, (_, index) =>
    buildFrame({
      family,
      source: (family === 4 ? 0x64400000n : 0xfd77n << 112n) + BigInt(index + 1),
      destination: destinationOf(family, index),
      sourceHardware: hardwareAddress.attacker,
      destinationHardware: hardwareAddress.routerOutside,
      id: index,
      transport: { kind: 'udp', sourcePort: 50_000, destinationPort: 60_000 },
      totalLength: 64,
    }),
  );
}

function compiledText(family: Family): string {
  return createCompiler().replace(manyRules(family), '0'.repeat(16)).text;
}

function linearText(): string {
  const lines = ['table inet levee {', 'chain forward {', 'type filter hook forward priority 0; policy accept;'];
  for (let index = 0; index < destinations; index++) {
    const destination = formatAddress({ family: 4, value: destinationOf(4, index) });
    for (let number = 0; number < rulesPerDestination; number++) {
      lines.push(
        `ip daddr ${destination} ${number % 2 === 0 ? 'udp' : 'tcp'} sport ${portOf(index, number)} counter drop`,
      );
    }
  }
  return `${[...lines, '}', '}'].join('\n')}\n`;
}
