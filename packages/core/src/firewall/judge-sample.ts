/**
 * What rules do to a packet of which only the beginning is known. Never guesses: where the rest of the packet, or what a
 * router remembers, could make the answer another, the answer is `undecided`. Uses the evaluator's own conditions
 * (`match.ts`), so that there is one meaning of a rule.
 *
 * A sample is judged as it arrived: a fragment is one, as to a router that does not track connections to that destination.
 * Limits are taken as not exceeded.
 */
import { type Entry, isFilter } from '../filter/entry.ts';
import { matchFilter } from '../filter/match-filter.ts';
import type { DecodedSample } from './decode-packet.ts';
import { findMismatch, type Mismatch } from './match.ts';
import type { Rule } from './rule.ts';

export type Sample = Extract<DecodedSample, { readonly ok: true }>;

export type SampleMatch = 'matched' | 'unmatched' | 'undecided';

/** Conditions that are not known to hold are left away one by one: what is left decides, or nothing does. */
export function matchSample(rule: Rule, sample: Sample): SampleMatch {
  let asked = rule;
  for (;;) {
    const mismatch = findMismatch(asked, sample.packet);
    if (mismatch === undefined) return asked === rule ? 'matched' : 'undecided';
    if (!isOpen(mismatch, sample)) return 'unmatched';
    asked = withoutCondition(asked, mismatch);
  }
}

/** Whether it is the sample that does not show it, not the packet. */
function isOpen(mismatch: Mismatch, { isCut, lacksHeaders }: Sample): boolean {
  switch (mismatch) {
    case 'connection_state_unknown':
      return true;
    case 'protocol_unknown':
    case 'extension_header_absent':
      return lacksHeaders;
    case 'source_port_unknown':
    case 'destination_port_unknown':
    case 'tcp_flags_unknown':
    case 'mptcp_option_unknown':
      return isCut;
    default:
      return false;
  }
}

function withoutCondition(rule: Rule, mismatch: Mismatch): Rule {
  const { connectionState, sourcePorts, destinationPorts, tcpFlags, ...rest } = rule;
  const state = connectionState !== undefined && { connectionState };
  const source = sourcePorts !== undefined && { sourcePorts };
  const destination = destinationPorts !== undefined && { destinationPorts };
  const flags = tcpFlags !== undefined && { tcpFlags };
  switch (mismatch) {
    case 'connection_state_unknown':
      return { ...rest, ...source, ...destination, ...flags };
    case 'source_port_unknown':
      return { ...rest, ...destination, ...flags, ...state };
    case 'destination_port_unknown':
      return { ...rest, ...source, ...flags, ...state };
    case 'tcp_flags_unknown':
      return { ...rest, ...source, ...destination, ...state };
    default:
      // The ports' condition asks for the protocol too, when the rule itself leaves it open.
      return rule.protocol === 'any' || rule.protocol === 'ip'
        ? { ...rest, ...flags, ...state }
        : { ...rule, protocol: 'any' };
  }
}

/** `filters`: no rule decides, and a filter looks at it, whose answer depends on what routers remember. */
export type SampleVerdict = 'accept' | 'drop' | 'reject' | 'filters' | 'undecided';

/** `entries`: those that cover the destination, in their order (`compareEntries`). */
export function judgeSample(entries: readonly Entry[], sample: Sample): SampleVerdict {
  const possible = new Set<SampleVerdict>();
  for (const entry of entries) {
    if (isFilter(entry)) {
      const match = matchFilter(entry, sample.packet);
      if (match.matched) return only(possible.add('filters'));
      if (sample.isCut && match.mismatch.endsWith('_unknown')) possible.add('filters');
      continue;
    }
    const verdict = verdictOf(entry);
    if (verdict === undefined) continue;
    const match = matchSample(entry, sample);
    if (match !== 'unmatched') possible.add(verdict);
    if (match === 'matched') return only(possible);
  }
  return only(possible.add('accept'));
}

function only(possible: ReadonlySet<SampleVerdict>): SampleVerdict {
  const [verdict] = possible;
  return possible.size === 1 && verdict !== undefined ? verdict : 'undecided';
}

/** Undefined: within its limit, or because it only counts, a packet goes on. */
function verdictOf(rule: Rule): 'accept' | 'drop' | 'reject' | undefined {
  if (rule.action === 'accept') return 'accept';
  if (rule.action === 'continue' || rule.rateLimitPacketsPerSecond !== undefined) return undefined;
  return rule.action;
}
