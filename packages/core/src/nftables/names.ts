/**
 * Owns every name that the table uses, and how a typed value becomes part of one: hexadecimal and decimal digits behind
 * a letter, so that no name can be one of nft's words and no text of a user can enter.
 * Never decides which of them exist.
 */
import type { Family, Prefix } from '../net/prefix.ts';

export const tableName = 'levee';

/**
 * The chain whose only rule bears the generation's mark. The number rises when the layout of the table changes in a way
 * that an older table must not be adopted: a program that looks for its own chain finds none, and replaces the table.
 */
export const markChainName = 'mark_6';

export const forwardHookChain = 'hook_forward';
/** What conntrack sees, and what not. */
export const preroutingHookChain = 'hook_prerouting';
export const ingressHookChain = 'hook_ingress';
/** What the router itself sends in the course of handshakes that it completes for clients. */
export const outputHookChain = 'hook_output';
/** Where tracked packets leave the prerouting hook. */
export const trackChain = 'track';
/** Picks, by destination, the SYNs that a SYN proxy answers: conntrack must not see them. */
export const synDispatchChain = 'syns';
/** Picks, by destination, the SYNs with which the router opens connections for clients, where filters count them. */
export const openingDispatchChain = 'openings';
/** Answers and discards: a TCP reset, or ICMP port-unreachable. */
export const refuseChain = 'refuse';
/** The transports with ports, as one set: an anonymous set a rule would be listed by nft at every change. */
export const portTransportsSet = 'with_ports';

/** Which hook a chain belongs to: `c` forward, `i` ingress. First letter of the names of its chains. */
export type PlaneLetter = 'c' | 'i';

/** `4_cb007107_32`: one text a prefix, usable in names and as a key. */
export function prefixKey(prefix: Prefix): string {
  const digits = prefix.family === 4 ? 8 : 32;
  return `${prefix.family}_${prefix.value.toString(16).padStart(digits, '0')}_${prefix.length}`;
}

/** The chain of one prefix. */
export function prefixChain(letter: PlaneLetter, key: string): string {
  return `${letter}${key}`;
}

/** The chain that prefixes with the same body share. */
export function sharedChain(letter: PlaneLetter, digest: string): string {
  return `${letter}s_${digest}`;
}

/** A run of a prefix's rules, reached by jump. */
export function runChain(letter: PlaneLetter, key: string, run: string): string {
  return `${letter}r${key}_${run}`;
}

/** The chain that picks by destination, where the hook's own does not. */
export function destinationChain(letter: PlaneLetter, family: Family): string {
  return `${letter}d${family}`;
}

/** Verdict map of one prefix length. */
export function destinationMap(letter: PlaneLetter, family: Family, length: number): string {
  return `${letter}m${family}_${length}`;
}

/** Verdict map of one prefix length, to the chains that say what conntrack sees. `direction`: whose address is asked for. */
export function trackedMap(direction: 'to' | 'from', family: Family, length: number): string {
  return `t${direction === 'to' ? 'd' : 's'}${family}_${length}`;
}

/** What conntrack sees, for all prefixes of which it is the same. */
export function trackedChain(digest: string): string {
  return `t_${digest}`;
}

/** Verdict map of one prefix length, to the chains that keep SYNs from conntrack. */
export function synMap(family: Family, length: number): string {
  return `sm${family}_${length}`;
}

/** Which SYNs to one prefix conntrack does not see. */
export function synChain(key: string): string {
  return `s${key}`;
}

/** Verdict map of one prefix length, to the chains that bound connections opened for clients. */
export function openingMap(family: Family, length: number): string {
  return `om${family}_${length}`;
}

/** Which connections to one prefix are counted, and by which filters. */
export function openingChain(key: string): string {
  return `o${key}`;
}

/** Default ports of a kind of filters, where they are many. */
export function kindPortsSet(kindId: number, transport: string, side: string): string {
  return `ports_${kindId}_${transport}_${side}`;
}

/**
 * A rule's own chains: `limit` holds its bucket, `either` the alternatives of which one must match, `verdict` what
 * follows. A UUID gives its 32 digits; any other text (tests) its bytes, behind an x, so that no two share a name.
 */
export function ruleChain(part: 'limit' | 'either' | 'verdict', uuid: string): string {
  return `${part}_${ruleDigits(uuid)}`;
}

/** A filter's own chains: what chains of destinations jump to is `in`; `discard` counts. */
export function filterChain(part: string, uuid: string): string {
  return `f_${part}_${ruleDigits(uuid)}`;
}

/**
 * A filter's own sets. Shorter than chains' names, with the UUID's number to the base 36: to find a set the kernel measures the
 * length of the names of all before it (decision 0028).
 */
export function filterSet(part: string, uuid: string): string {
  const digits = ruleDigits(uuid);
  return `f_${part}_${digits.startsWith('x') ? digits : BigInt(`0x${digits}`).toString(36)}`;
}

export function ruleDigits(uuid: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uuid)) return uuid.replaceAll('-', '');
  return `x${Buffer.from(uuid).toString('hex')}`;
}
