/**
 * Owns the way from unknown fields to a trusted flowrule: all problems at once. What passes can be announced: a speaker
 * that takes a malformed route brings its sessions down. Never decides whose the destination is.
 */
import { flowActions, flowComponents } from '@levee/contract/schemas/flowrule.ts';
import {
  type Fields,
  fieldOf,
  readInteger,
  readObject,
  readWord,
  refuseUnknownFields,
} from '../firewall/wire-values.ts';
import type { Prefix } from '../net/prefix.ts';
import { formatPrefix } from '../net/prefix-text.ts';
import { readPrefix } from '../net/read.ts';
import { type Path, type Problem, problem, quote, showReceived } from '../problem.ts';
import { type FlagExpression, formatFlagExpression, parseFlagExpression } from './flag-expression.ts';
import {
  type CanonicalFlowrule,
  type FlagComponent,
  type FlowComponent,
  type Flowrule,
  type FlowTreatment,
  flagKinds,
  type NumberComponent,
  numberKinds,
} from './flowrule.ts';
import { formatNumberSet, isInSet, type NumberKind, type NumberSet, parseNumberSet } from './number-set.ts';

export type ParsedFlowrule =
  | { readonly ok: true; readonly flowrule: Flowrule; readonly canonical: CanonicalFlowrule }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const fieldNames = ['dst', 'components', 'action', 'ratelimit', 'redirect_target', 'mark_dscp'];
/** No component's text is longer within its bounds. */
const longestText = 2048;
/** A rate travels as a 32-bit float (RFC 8955, 7.1); this is 8 Tbit/s. */
const rateBounds = { minimum: 1, maximum: 1_000_000_000_000 };

const TCP = 6;
const UDP = 17;

/** `wire`: a JSON value. A canonical flowrule parses to itself. Never throws. */
export function parseFlowrule(wire: unknown): ParsedFlowrule {
  const problems: Problem[] = [];
  const fields = readObject(wire, [], problems);
  if (fields === undefined) return { ok: false, problems };
  refuseUnknownFields(fields, fieldNames, [], problems);
  const dstValue = fieldOf(fields, 'dst');
  const dst = dstValue === undefined ? required('dst', problems) : readPrefix(dstValue, ['dst'], problems);
  const read = readComponents(fieldOf(fields, 'components'), problems);
  const treatment = readTreatment(fields, problems);
  if (read !== undefined) checkTogether(read, dst, problems);
  if (treatment?.action === 'blackhole' && Object.keys(fieldOf(fields, 'components') ?? {}).length > 0) {
    const sentence = 'must be empty for the action blackhole, which takes all packets to dst';
    problems.push(problem(['components'], 'other_action', sentence));
  }
  if (problems.length > 0 || dst === undefined || read === undefined || treatment === undefined) {
    return { ok: false, problems };
  }
  const { source, numbers, flags } = read;
  const flowrule: Flowrule = { dst, ...(source && { source }), numbers, flags, treatment };
  return { ok: true, flowrule, canonical: toCanonical(flowrule) };
}

function required(name: string, problems: Problem[]): undefined {
  problems.push(problem([name], 'required', 'is required'));
}

interface ReadComponents {
  readonly source: Prefix | undefined;
  readonly numbers: Partial<Record<NumberComponent, NumberSet>>;
  readonly flags: Partial<Record<FlagComponent, FlagExpression>>;
}

function readComponents(value: unknown, problems: Problem[]): ReadComponents | undefined {
  if (value === undefined) return required('components', problems);
  const fields = readObject(value, ['components'], problems);
  if (fields === undefined) return undefined;
  refuseUnknownFields(fields, flowComponents, ['components'], problems);
  const read: ReadComponents = { source: readSource(fields, problems), numbers: {}, flags: {} };
  for (const name of Object.keys(numberKinds) as NumberComponent[]) {
    const text = readText(fields, name, problems);
    if (text === undefined) continue;
    const parsed = parseNumberSet(text, numberKinds[name]);
    if (parsed.ok) read.numbers[name] = parsed.set;
    else problems.push(problem(['components', name], 'malformed', parsed.sentence));
  }
  for (const name of Object.keys(flagKinds) as FlagComponent[]) {
    const text = readText(fields, name, problems);
    if (text === undefined) continue;
    const parsed = parseFlagExpression(text, flagKinds[name]);
    if (parsed.ok) read.flags[name] = parsed.expression;
    else problems.push(problem(['components', name], 'malformed', parsed.sentence));
  }
  return read;
}

function readSource(fields: Fields, problems: Problem[]): Prefix | undefined {
  const value = fieldOf(fields, 'source-prefix');
  return value === undefined ? undefined : readPrefix(value, ['components', 'source-prefix'], problems);
}

function readText(fields: Fields, name: FlowComponent, problems: Problem[]): string | undefined {
  const value = fieldOf(fields, name);
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.length <= longestText) return value;
  const received = typeof value === 'string' ? `one of ${value.length} characters` : showReceived(value);
  const sentence = `must be a string of at most ${longestText} characters, received ${received}`;
  problems.push(problem(['components', name], typeof value === 'string' ? 'too_long' : 'wrong_type', sentence));
  return undefined;
}

/** Components that no packet can meet together, or that the destination's family does not have. */
function checkTogether({ source, numbers, flags }: ReadComponents, dst: Prefix | undefined, problems: Problem[]): void {
  const at = (name: FlowComponent): Path => ['components', name];
  if (dst !== undefined) {
    if (source !== undefined && source.family !== dst.family) {
      const sentence = `is IPv${source.family} and dst ${formatPrefix(dst)} is IPv${dst.family}; both must be of one family`;
      problems.push(problem(at('source-prefix'), 'mixed_families', sentence));
    }
    if (numbers['flow-label'] !== undefined && dst.family === 4) {
      problems.push(problem(at('flow-label'), 'not_in_family', 'exists in IPv6 alone; dst is IPv4'));
    }
    const ofFour = flagKinds.fragment['dont-fragment'];
    if (dst.family === 6 && flags.fragment?.some(({ set, unset }) => ((set | unset) & ofFour) !== 0)) {
      problems.push(problem(at('fragment'), 'not_in_family', 'dont-fragment exists in IPv4 alone; dst is IPv6'));
    }
  }
  const { protocol } = numbers;
  if (protocol === undefined) return;
  const needs = (names: readonly FlowComponent[], numbersAllowed: readonly number[], words: string) => {
    if (numbersAllowed.some((number) => isInSet(protocol, number))) return;
    for (const name of names) {
      const given = name in numbers || name in flags;
      if (given)
        problems.push(
          problem(
            at(name),
            'other_protocol',
            `needs the protocol ${words}, received ${formatNumberSet(protocol, numberKinds.protocol)}`,
          ),
        );
    }
  };
  needs(['port', 'destination-port', 'source-port'], [TCP, UDP], 'tcp or udp');
  needs(['tcp-flags'], [TCP], 'tcp');
  const icmp = dst?.family === 6 ? { number: 58, word: 'ipv6-icmp' } : { number: 1, word: 'icmp' };
  if (dst !== undefined) needs(['icmp-type', 'icmp-code'], [icmp.number], icmp.word);
}

/** Each action has its own field, and none of the others'. */
const fieldOfAction = { 'rate-limit': 'ratelimit', redirect: 'redirect_target', mark: 'mark_dscp' } as const;

function readTreatment(fields: Fields, problems: Problem[]): FlowTreatment | undefined {
  const value = fieldOf(fields, 'action');
  if (value === undefined) return required('action', problems);
  const action = readWord(value, flowActions, ['action'], problems);
  if (action === undefined) return undefined;
  for (const [owner, name] of Object.entries(fieldOfAction)) {
    const given = fieldOf(fields, name) !== undefined;
    if (given && owner !== action) {
      problems.push(problem([name], 'other_action', `is for the action ${owner}, received the action ${action}`));
    } else if (!given && owner === action) {
      problems.push(problem([name], 'required', `is required for the action ${action}`));
    }
  }
  switch (action) {
    case 'discard':
    case 'blackhole':
      return { action };
    case 'rate-limit': {
      const rate = fieldOf(fields, 'ratelimit');
      const bytesPerSecond = rate === undefined ? undefined : readInteger(rate, rateBounds, ['ratelimit'], problems);
      return bytesPerSecond === undefined ? undefined : { action, bytesPerSecond };
    }
    case 'redirect': {
      const target = fieldOf(fields, 'redirect_target');
      const routeTarget = target === undefined ? undefined : readRouteTarget(target, problems);
      return routeTarget === undefined ? undefined : { action, routeTarget };
    }
    case 'mark': {
      const code = fieldOf(fields, 'mark_dscp');
      const dscp =
        code === undefined ? undefined : readInteger(code, { minimum: 0, maximum: 63 }, ['mark_dscp'], problems);
      return dscp === undefined ? undefined : { action, dscp };
    }
  }
}

/** AS of two octets with a number of four, AS of four or an IPv4 address with one of two (RFC 8955, 7.4). */
function readRouteTarget(value: unknown, problems: Problem[]): string | undefined {
  const found = typeof value === 'string' ? /^([0-9.]{1,15}):(0|[1-9][0-9]{0,9})$/.exec(value) : null;
  const [, administrator = '', number = ''] = found ?? [];
  const asn = /^(0|[1-9][0-9]{0,9})$/.test(administrator) ? Number(administrator) : undefined;
  const isAddress = administrator.includes('.') && readPrefix(administrator, [], [])?.length === 32;
  const limit = asn !== undefined && asn <= 0xffff ? 0xffffffff : 0xffff;
  const fits = (isAddress || (asn !== undefined && asn <= 0xffffffff)) && Number(number) <= limit;
  if (found !== null && fits) return `${administrator}:${number}`;
  const received = typeof value === 'string' ? quote(value) : showReceived(value);
  const sentence = `must be a route target, such as 64500:666 or 192.0.2.1:666, received ${received}`;
  problems.push(problem(['redirect_target'], 'malformed', sentence));
  return undefined;
}

function toCanonical({ dst, source, numbers, flags, treatment }: Flowrule): CanonicalFlowrule {
  const texts = flowComponents.map((name): [FlowComponent, string | undefined] => {
    if (name === 'source-prefix') return [name, source && formatPrefix(source)];
    const set = numbers[name as NumberComponent];
    if (set !== undefined) return [name, formatNumberSet(set, numberKinds[name as NumberComponent] as NumberKind)];
    const expression = flags[name as FlagComponent];
    return [name, expression && formatFlagExpression(expression, flagKinds[name as FlagComponent])];
  });
  return {
    dst: formatPrefix(dst),
    components: Object.fromEntries(texts.filter(([, text]) => text !== undefined)),
    action: treatment.action,
    ...(treatment.action === 'rate-limit' && { ratelimit: treatment.bytesPerSecond }),
    ...(treatment.action === 'redirect' && { redirect_target: treatment.routeTarget }),
    ...(treatment.action === 'mark' && { mark_dscp: treatment.dscp }),
  };
}
