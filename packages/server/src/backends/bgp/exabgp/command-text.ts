/**
 * Routes as ExaBGP's text commands (4.2). What is done with packets goes as the octets of its communities, for which its
 * own words do not suffice. Never sees anything but compiled routes: no text of anybody gets into a command.
 */
import { afiSafiOf, type BgpRoute } from '@levee/core/flowspec/bgp-route.ts';
import type { FlagExpression } from '@levee/core/flowspec/flag-expression.ts';
import { flagKinds, type NumberComponent, numberKinds } from '@levee/core/flowspec/flowrule.ts';
import type { NumberSet } from '@levee/core/flowspec/number-set.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';

export interface RouteCommands {
  readonly announce: string;
  readonly withdraw: string;
}

export function routeCommands(route: BgpRoute): RouteCommands {
  const text = route.family.startsWith('flow') ? flowText(route) : unicastText(route);
  return { announce: `announce ${text}`, withdraw: `withdraw ${text}` };
}

const four: Partial<Record<NumberComponent, string>> = {};
const six: Partial<Record<NumberComponent, string>> = { protocol: 'next-header', dscp: 'traffic-class' };

function flowText({ family, flowrule, content }: BgpRoute): string {
  const { dst, source, numbers, flags } = flowrule;
  const isFour = afiSafiOf(family).afi === 1;
  const names = isFour ? four : six;
  const parts = [`destination ${prefixText(dst)}`];
  if (source !== undefined) parts.push(`source ${prefixText(source)}`);
  for (const [name, set] of Object.entries(numbers) as [NumberComponent, NumberSet][]) {
    parts.push(`${names[name] ?? name} [ ${numbersText(set, numberKinds[name].maximum)} ]`);
  }
  const { 'tcp-flags': tcp, fragment } = flags;
  if (tcp !== undefined) parts.push(`tcp-flags [ ${flagsText(tcp, flagKinds['tcp-flags'])} ]`);
  if (fragment !== undefined) parts.push(`fragment [ ${flagsText(fragment, flagKinds.fragment)} ]`);
  const then = `${communitiesOf(content, ';')};`;
  return `flow route { match { ${parts.map((part) => `${part};`).join(' ')} } then { ${then} } }`;
}

/** IPv6 as GoBGP's and ours: without an offset (RFC 8956, 3.1). */
function prefixText(prefix: Prefix): string {
  const text = `${formatAddress(prefix)}/${prefix.length}`;
  return prefix.family === 4 ? text : `${text}/0`;
}

function numbersText(set: NumberSet, maximum: number): string {
  return set
    .map(({ start, end }) => {
      if (start === end) return `=${start}`;
      if (end === maximum) return `>=${start}`;
      return start === 0 ? `<=${end}` : `>=${start}&<=${end}`;
    })
    .join(' ');
}

function flagsText(expression: FlagExpression, bits: Readonly<Record<string, number>>): string {
  const words = (value: number) =>
    Object.entries(bits)
      .filter(([, bit]) => (value & bit) !== 0)
      .map(([name]) => (name === 'psh' ? 'push' : name === 'urg' ? 'urgent' : name))
      .join('+');
  return expression
    .map(({ set, unset }) => [...(set ? [`=${words(set)}`] : []), ...(unset ? [`!${words(unset)}`] : [])].join('&'))
    .join(' ');
}

function unicastText({ flowrule, content, family }: BgpRoute): string {
  const hex = /nexthop:([0-9a-f]+)/.exec(content)?.[1] ?? '';
  const value = BigInt(`0x${hex}`);
  const nextHop = formatAddress({ family: family === 'unicast4' ? 4 : 6, value });
  const { dst } = flowrule;
  return `route ${formatAddress(dst)}/${dst.length} next-hop ${nextHop} origin igp ${communitiesOf(content, '')}`;
}

/** Of the text that says what a route's attributes are. */
function communitiesOf(content: string, separator: string): string {
  const found = new Map<string, string[]>();
  for (const part of content.split(' ')) {
    const [kind = '', hex = ''] = part.split(':');
    const numbers = (size: number) =>
      (hex.match(new RegExp(`.{${size}}`, 'g')) ?? []).map((each) => Number.parseInt(each, 16)).join(':');
    if (kind === 'community') found.set(kind, [...(found.get(kind) ?? []), numbers(4)]);
    else if (kind === 'large') found.set('large-community', [...(found.get('large-community') ?? []), numbers(8)]);
    else if (kind === 'extended')
      found.set('extended-community', [...(found.get('extended-community') ?? []), `0x${hex}`]);
  }
  return [...found].map(([name, all]) => `${name} [ ${all.join(' ')} ]`).join(`${separator} `);
}
