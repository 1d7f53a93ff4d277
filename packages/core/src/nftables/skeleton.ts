/**
 * Owns the table's fixed parts: the hooks, the choice by destination, what conntrack sees, the mark.
 * Never looks at rules: it is told which prefix lengths are in use.
 */
import { portTransportNumbers } from '../firewall/protocol-traits.ts';
import { formatAddress } from '../net/address.ts';
import { type Family, familyBits, hostMask } from '../net/prefix.ts';
import { kindPortSets } from './kind-ports.ts';
import { planeLetters } from './layout.ts';
import {
  destinationChain,
  destinationMap,
  forwardHookChain,
  ingressHookChain,
  markChainName,
  openingDispatchChain,
  openingMap,
  outputHookChain,
  type PlaneLetter,
  portTransportsSet,
  preroutingHookChain,
  refuseChain,
  synDispatchChain,
  synMap,
  tableName,
  trackedMap,
} from './names.ts';
import { fragmentMark } from './rule-text.ts';
import type { SetDefinition } from './transaction.ts';

/** nfnetlink's numbers of the families. */
const familyNumbers: Record<Family, number> = { 4: 2, 6: 10 };
export const families: readonly Family[] = [4, 6];

/**
 * Before the kernel puts fragments together (-400) and before conntrack (-200): what is not tracked stays as it
 * arrived. NF_IP_PRI_RAW_BEFORE_DEFRAG of linux/netfilter_ipv4.h.
 */
const beforeDefragmentation = -450;
/** Of what the router itself sends, there is nothing to put together. NF_IP_PRI_RAW. */
const beforeConntrack = -300;

/** `{family, length}` of prefixes in use, as `4_24`. */
export function lengthKey(family: Family, length: number): string {
  return `${family}_${length}`;
}

export function destinationMapDefinition(letter: PlaneLetter, family: Family, length: number): SetDefinition {
  const name = destinationMap(letter, family, length);
  return { name, kind: 'map', properties: [`type ipv${family}_addr : verdict`, 'counter'] };
}

export function trackedMapDefinition(direction: 'to' | 'from', family: Family, length: number): SetDefinition {
  const name = trackedMap(direction, family, length);
  return { name, kind: 'map', properties: [`type ipv${family}_addr : verdict`] };
}

export function synMapDefinition(family: Family, length: number): SetDefinition {
  return { name: synMap(family, length), kind: 'map', properties: [`type ipv${family}_addr : verdict`] };
}

export function openingMapDefinition(family: Family, length: number): SetDefinition {
  return { name: openingMap(family, length), kind: 'map', properties: [`type ipv${family}_addr : verdict`] };
}

/** One probe a length, longest first. `lengths` in any order. */
function destinationLines(letter: PlaneLetter, family: Family, lengths: readonly number[]): string[] {
  return longestFirst(lengths).map(
    (length) => `${masked(family, 'daddr', length)} vmap @${destinationMap(letter, family, length)}`,
  );
}

/**
 * What is tracked is tracked both ways, or no reply would ever be seen and nothing would be established. So is
 * what the router itself receives: its own firewall may rely on it. Everything else stays out of conntrack, where a
 * flood of random sources would fill the table for all.
 */
export function trackingLines(
  tracked: ReadonlyMap<Family, readonly number[]>,
  syns: ReadonlyMap<Family, readonly number[]>,
): string[] {
  const lines: string[] = [];
  if (hasAny(syns)) lines.push(`${synAlone} jump ${synDispatchChain}`);
  for (const [family, lengths] of tracked) {
    for (const length of longestFirst(lengths)) {
      lines.push(`${masked(family, 'daddr', length)} vmap @${trackedMap('to', family, length)}`);
      lines.push(`${masked(family, 'saddr', length)} vmap @${trackedMap('from', family, length)}`);
    }
  }
  return [...lines, 'fib daddr type != local notrack'];
}

/** RFC 9293, 3.1: of FIN, SYN, RST and ACK in octet 13, SYN alone. Loaded as three octets: see rule-text.ts. */
const synAlone = 'meta l4proto 6 @th,88,24 & 0x17 == 0x02';
const synAck = 'meta l4proto 6 @th,88,24 & 0x17 == 0x12';

function hasAny(lengths: ReadonlyMap<Family, readonly number[]>): boolean {
  return [...lengths.values()].some((each) => each.length > 0);
}

/**
 * What the router sends in others' names, which its own addresses tell apart. Its answers to SYNs are not for conntrack: a
 * former connection between the same ports, which is remembered for two minutes, would have the cookie rewritten by the
 * difference of its own sequence numbers.
 */
export function outputLines(
  syns: ReadonlyMap<Family, readonly number[]>,
  openings: ReadonlyMap<Family, readonly number[]>,
): string[] {
  return [
    ...(hasAny(syns) ? [`${synAck} fib saddr type != local notrack`] : []),
    ...(hasAny(openings) ? [`${synAlone} fib saddr type != local jump ${openingDispatchChain}`] : []),
  ];
}

/** `lengths` in any order; from the chains behind the maps a packet comes back unless they decide about it. */
export function dispatchLines(
  map: (family: Family, length: number) => string,
  lengths: ReadonlyMap<Family, readonly number[]>,
): string[] {
  return [...lengths].flatMap(([family, each]) =>
    longestFirst(each).map((length) => `${masked(family, 'daddr', length)} vmap @${map(family, length)}`),
  );
}

/** `marksFragments`: some rule asks for IPv6 fragments, which conntrack is about to put together. */
export function trackLines(marksFragments: boolean): string[] {
  const marking = `exthdr frag exists meta mark set meta mark | ${fragmentMark}`;
  return marksFragments ? [marking, 'accept'] : ['accept'];
}

export function fixedSets(): SetDefinition[] {
  return [
    { name: portTransportsSet, kind: 'set', properties: ['type inet_proto'] },
    ...kindPortSets.map(({ definition }) => definition),
  ];
}

/** By set. */
export function fixedElements(): Map<string, readonly string[]> {
  return new Map([
    [portTransportsSet, portTransportNumbers.map(String)],
    ...kindPortSets.map(({ definition, elements }) => [definition.name, elements] as const),
  ]);
}

/** The first line of each base chain. `ingressDevices`: without any there is no ingress hook. */
export function hookDeclarations(ingressDevices: readonly string[]): Map<string, string> {
  const hooks = new Map([
    [forwardHookChain, 'type filter hook forward priority 0; policy accept;'],
    [preroutingHookChain, `type filter hook prerouting priority ${beforeDefragmentation}; policy accept;`],
    [outputHookChain, `type filter hook output priority ${beforeConntrack}; policy accept;`],
  ]);
  if (ingressDevices.length > 0) {
    const devices = ingressDevices.map(deviceText).join(', ');
    hooks.set(ingressHookChain, `type filter hook ingress devices = { ${devices} } priority 0; policy accept;`);
  }
  return hooks;
}

/** Chains whose lines never change. */
export function fixedChains(ingressDevices: readonly string[]): Map<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>();
  if (ingressDevices.length > 0) {
    // What is addressed to this host's hardware is the forward hook's.
    const dispatch = families.map((family) => `meta pkttype != 0 ${dispatchLine(planeLetters.ingress, family)}`);
    chains.set(ingressHookChain, dispatch);
  }
  chains.set(markChainName, []);
  // A rule's own chain that ends here may be reached from ingress, where no frame is this host's to answer.
  chains.set(refuseChain, [
    'meta pkttype != 0 drop',
    'meta l4proto 6 reject with tcp reset',
    'reject with icmpx port-unreachable',
  ]);
  return chains;
}

/**
 * Where packets meet the choice by destination. At the forward hook IPv4's probes stand in the hook's own chain, which
 * saves each packet a hop; IPv6 leaves it first, or it would pay a check of the family for each of them.
 */
export function destinationChains(
  letter: PlaneLetter,
  lengths: ReadonlyMap<Family, readonly number[]>,
): Map<string, readonly string[]> {
  const lines = (family: Family) => destinationLines(letter, family, lengths.get(family) ?? []);
  const chains = new Map<string, readonly string[]>([[destinationChain(letter, 6), lines(6)]]);
  if (letter === planeLetters.forward) chains.set(forwardHookChain, [dispatchLine(letter, 6), ...lines(4)]);
  else chains.set(destinationChain(letter, 4), lines(4));
  return chains;
}

/**
 * Replaces the mark of a loaded table, or gives a new one its first. `mark`: 16 lower-case hexadecimal digits. Packets never
 * come here; the rule has a condition because each needs something, and this one asks for no validation of the table. A
 * chain, and no set, because nft 1.0.6 reads all sets before it empties one (decision 0028).
 */
export function markCommands(mark: string): string[] {
  if (!/^[0-9a-f]{16}$/.test(mark)) throw new Error('a mark has 16 lower-case hexadecimal digits');
  const chain = `chain inet ${tableName} ${markChainName}`;
  return [`flush ${chain}`, `add ${chain} {`, `@nh,0,8 0 comment "${mark}"`, '}'];
}

function dispatchLine(letter: PlaneLetter, family: Family): string {
  return `meta nfproto ${familyNumbers[family]} goto ${destinationChain(letter, family)}`;
}

function masked(family: Family, side: 'daddr' | 'saddr', length: number): string {
  const field = `${family === 4 ? 'ip' : 'ip6'} ${side}`;
  const bits = familyBits(family);
  if (length === bits) return field;
  return `${field} & ${formatAddress({ family, value: hostMask(family, 0) ^ hostMask(family, length) })}`;
}

function longestFirst(lengths: readonly number[]): number[] {
  return lengths.toSorted((a, b) => b - a);
}

/** Linux's own limits (dev_valid_name), less what nft's quotes cannot hold. */
function deviceText(device: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.@:-]{0,14}$/.test(device) || device.includes(':')) {
    throw new Error('an ingress device needs a plain name of at most 15 characters');
  }
  return `"${device}"`;
}
