/**
 * Reads how BIRD 2 shows FlowSpec routes and their attributes (`show route table … all`) into the fields of a flowrule:
 * what a router says that it was told, for comparison with what was asked. Numbers stay numbers, also protocols'. Throws
 * at what it does not know, so that nothing is compared that was not understood.
 */

/** As a flowrule has them: `dst`, `components` by their names, `action` and what the action has. */
export interface SeenRoute {
  readonly dst: string;
  readonly components: Readonly<Record<string, string>>;
  readonly action: string;
  readonly ratelimit?: number;
  readonly redirect_target?: string;
  readonly mark_dscp?: number;
}

export interface SeenAttributes {
  /** `65535:666` */
  readonly communities: readonly string[];
  /** `4200000000:1:2` */
  readonly largeCommunities: readonly string[];
  /** 16 hexadecimal digits each. */
  readonly extendedCommunities: readonly string[];
  readonly nextHop: string | undefined;
}

const numberNames: Readonly<Record<string, readonly [string, number]>> = {
  proto: ['protocol', 255],
  'next header': ['protocol', 255],
  port: ['port', 65535],
  dport: ['destination-port', 65535],
  sport: ['source-port', 65535],
  'icmp type': ['icmp-type', 255],
  'icmp code': ['icmp-code', 255],
  length: ['packet-length', 65535],
  dscp: ['dscp', 63],
  label: ['flow-label', 0xfffff],
};
const tcpFlagNames = ['fin', 'syn', 'rst', 'psh', 'ack', 'urg', 'ece', 'cwr'];
const fragmentNames = ['dont-fragment', 'is-fragment', 'first-fragment', 'last-fragment'];
const fragmentWords: Readonly<Record<string, string>> = Object.fromEntries(
  fragmentNames.map((name) => [name.replace('-', '_'), name]),
);

/** `text`: `flow4 { dst 203.0.113.5/32; proto 17; sport 53,1000..2000; }` */
export function readBirdFlow(text: string): Pick<SeenRoute, 'dst' | 'components'> {
  const body = /^flow[46] \{ (.*)\s*\}$/s.exec(text.trim())?.[1];
  if (body === undefined) throw new Error(`not a flow: ${text}`);
  let dst = '';
  const components: Record<string, string> = {};
  for (const part of body.split(';').map((each) => each.trim())) {
    if (part === '') continue;
    const [, name = '', value = ''] =
      /^(dst|src|next header|icmp (?:type|code)|tcp flags|[a-z]+) (.*)$/.exec(part) ?? [];
    const number = numberNames[name];
    if (name === 'dst') dst = value;
    else if (name === 'src') components['source-prefix'] = value;
    else if (number !== undefined) components[number[0]] = readNumbers(value, number[1]);
    else if (name === 'tcp flags') components['tcp-flags'] = readAlternatives(value, tcpFlagsOf);
    else if (name === 'fragment') components.fragment = readAlternatives(value, fragmentsOf);
    else throw new Error(`BIRD shows what is not known here: ${part}`);
  }
  return { dst, components };
}

function readNumbers(text: string, maximum: number): string {
  return text
    .split(',')
    .map((each) => {
      const item = each.trim();
      const from = /^>= (\d+)$/.exec(item)?.[1];
      if (from !== undefined) return Number(from) === maximum ? from : `${from}-${maximum}`;
      const to = /^<= (\d+)$/.exec(item)?.[1];
      if (to !== undefined) return to === '0' ? '0' : `0-${to}`;
      const range = /^(\d+)\.\.(\d+)$/.exec(item);
      if (range !== null) return `${range[1]}-${range[2]}`;
      if (!/^\d+$/.test(item)) throw new Error(`numbers that are not known here: ${text}`);
      return item;
    })
    .join(',');
}

function readAlternatives(text: string, read: (literal: string) => string[]): string {
  return text
    .split('||')
    .map((alternative) =>
      alternative
        .split('&&')
        .flatMap((literal) => read(literal.trim()))
        .join('&'),
    )
    .join(',');
}

const tcpFlagsOf = (literal: string) => flagsOf(literal, tcpFlagNames);

/** By name where it is one bit, else as flags. */
function fragmentsOf(literal: string): string[] {
  const [, not = '', word = ''] = /^(!?)([a-z_]+)$/.exec(literal) ?? [];
  const name = fragmentWords[word];
  return name === undefined ? flagsOf(literal, fragmentNames) : [`${not}${name}`];
}

/** `0x2/0x2`: set; `0x0/0x14`, or `!0x4/0x4` for one: none of them. Others cannot be said as alternatives of single flags. */
function flagsOf(literal: string, names: readonly string[]): string[] {
  const [, not = '', value = '', mask = ''] = /^(!?)0x([0-9a-f]+)\/0x([0-9a-f]+)$/.exec(literal) ?? [];
  const bits = Number.parseInt(mask, 16);
  const found = names.filter((_name, bit) => (bits & (1 << bit)) !== 0);
  const isOne = (bits & (bits - 1)) === 0;
  if (value !== '' && value === mask && not === '') return found;
  if ((value === '0' && not === '') || (value === mask && not === '!' && isOne)) return found.map((name) => `!${name}`);
  throw new Error(`flags that are not known here: ${literal}`);
}

/** `lines`: those under a route. */
export function readBirdAttributes(lines: readonly string[]): SeenAttributes {
  const shown = (name: string) => {
    const line = lines.find((each) => each.trim().startsWith(`BGP.${name}:`));
    return line?.slice(line.indexOf(':') + 1).trim();
  };
  const tuples = (text = '') => [...text.matchAll(/\(([^)]*)\)/g)].map(([, inner = '']) => inner.split(/,\s*/));
  return {
    communities: tuples(shown('community')).map((parts) => parts.join(':')),
    largeCommunities: tuples(shown('large_community')).map((parts) => parts.join(':')),
    extendedCommunities: tuples(shown('ext_community')).map(extendedCommunity),
    nextHop: shown('next_hop'),
  };
}

/** BIRD knows route targets and origins by name, others as `(generic, 0x80060000, 0x0)`. */
function extendedCommunity([kind = '', high = '', low = '']: readonly string[]): string {
  if (kind !== 'generic') throw new Error(`an extended community that is not known here: ${kind}`);
  const digits = (text: string) => Number(text).toString(16).padStart(8, '0');
  return digits(high) + digits(low);
}

/** RFC 8955, 7. */
export function treatmentOf(extendedCommunities: readonly string[]): Omit<SeenRoute, 'dst' | 'components'> {
  const [only, ...more] = extendedCommunities;
  if (only === undefined || more.length > 0) {
    throw new Error(`not one action: ${extendedCommunities.join(' ')}`);
  }
  const view = new DataView(Uint8Array.from(Buffer.from(only, 'hex')).buffer);
  switch (only.slice(0, 4)) {
    case '8006': {
      const ratelimit = view.getFloat32(4);
      return ratelimit === 0 ? { action: 'discard' } : { action: 'rate-limit', ratelimit };
    }
    case '8008':
      return { action: 'redirect', redirect_target: `${view.getUint16(2)}:${view.getUint32(4)}` };
    case '8108': {
      const address = [2, 3, 4, 5].map((at) => view.getUint8(at)).join('.');
      return { action: 'redirect', redirect_target: `${address}:${view.getUint16(6)}` };
    }
    case '8208':
      return { action: 'redirect', redirect_target: `${view.getUint32(2)}:${view.getUint16(6)}` };
    case '8009':
      return { action: 'mark', mark_dscp: view.getUint8(7) };
    default:
      throw new Error(`an action that is not known here: ${only}`);
  }
}
