/**
 * Owns the kinds of value that a setting can have: how each is read from text and from TOML, and how it is written
 * back as text. Expected failures come back as a sentence that says what is allowed.
 */
import { isIP, isIPv6 } from 'node:net';
import type { LargeCommunity } from '@levee/core/flowspec/bgp-route.ts';
import { formatAddress, parseAddress } from '@levee/core/net/address.ts';
import type { Family } from '@levee/core/net/prefix.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { longestPoolLengths } from '@levee/core/tunnel/allocation.ts';

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string };

export interface ValueType<T> {
  /** For help and documentation: `host:port`, `path` … */
  readonly word: string;
  /** From an environment variable, a file or the command line; never empty. */
  parse(text: string): Parsed<T>;
  /** The text that `parse` reads back to the same value. */
  write(value: T): string;
  /** From levee.toml, where it is more than a string there; `parse` takes strings. */
  fromToml?(value: unknown): Parsed<T>;
}

const yes = <T>(value: T): Parsed<T> => ({ ok: true, value });
const no = (message: string): { ok: false; message: string } => ({ ok: false, message });

export const text: ValueType<string> = { word: 'text', parse: yes, write: String };

export const path: ValueType<string> = {
  word: 'path',
  parse: (given) => (given.includes('\0') ? no('a path holds no NUL character') : yes(given)),
  write: String,
};

export interface HostAndPort {
  readonly host: string;
  /** 0: the kernel chooses. */
  readonly port: number;
}

/** `127.0.0.1:8080`, `levee.example.net:8080`, `[::1]:8080`; port 0 … 65535. */
export const hostAndPort: ValueType<HostAndPort> = {
  word: 'host:port',
  parse(given) {
    const match = /^(?:\[([^\]]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(given);
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3]);
    const isHost = match?.[1] === undefined || isIPv6(match[1]);
    if (host !== undefined && isHost && port <= 65535) return yes({ host, port });
    return no('expected host:port or [IPv6 address]:port with a port from 0 to 65535, such as 127.0.0.1:8080');
  },
  write: ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`,
};

/** `192.0.2.53:53`, `[2001:db8::53]:53`. */
export const addressAndPort: ValueType<HostAndPort> = {
  word: 'address:port',
  parse(given) {
    const parsed = hostAndPort.parse(given);
    if (parsed.ok && isIP(parsed.value.host) !== 0 && parsed.value.port > 0) return parsed;
    return no('expected address:port or [IPv6 address]:port with a port from 1 to 65535, such as 192.0.2.53:53');
  },
  write: hostAndPort.write,
};

export function choice<const T extends string>(...words: readonly T[]): ValueType<T> {
  return {
    word: words.join('|'),
    parse(given) {
      const found = words.find((word) => word === given);
      return found === undefined ? no(`expected one of ${words.join(', ')}`) : yes(found);
    },
    write: String,
  };
}

/** Text: separated by commas. TOML: an array of strings as well. */
export function listOf<T>(item: ValueType<T>): ValueType<readonly T[]> {
  const parseAll = (parts: readonly string[]): Parsed<readonly T[]> => {
    const values: T[] = [];
    for (const part of parts) {
      const parsed = part === '' ? no('an entry is empty') : item.parse(part);
      if (!parsed.ok) return parsed;
      values.push(parsed.value);
    }
    return yes(values);
  };
  return {
    word: `${item.word},…`,
    parse: (given) => parseAll(given.split(',').map((part) => part.trim())),
    write: (values) => values.map((value) => item.write(value)).join(','),
    fromToml(value) {
      if (typeof value === 'string') return this.parse(value);
      if (!Array.isArray(value) || value.some((part) => typeof part !== 'string'))
        return no('expected a list of strings');
      return parseAll(value as string[]);
    },
  };
}

/** A list that may be none, said as `off`; in TOML an empty list or text as well. */
export function orOff<T>(list: ValueType<readonly T[]>): ValueType<readonly T[]> {
  return {
    word: `${list.word}|off`,
    parse: (given) => (given === 'off' ? yes([]) : list.parse(given)),
    write: (values) => (values.length === 0 ? 'off' : list.write(values)),
    fromToml(value) {
      const isNone = value === 'off' || value === '' || (Array.isArray(value) && value.length === 0);
      if (isNone) return yes([]);
      return list.fromToml?.(value) ?? no('expected a list of strings');
    },
  };
}

/** Decimal, without sign; in TOML a number as well. */
export function wholeNumber(least: number, most: number): ValueType<number> {
  const judge = (value: number): Parsed<number> =>
    Number.isInteger(value) && value >= least && value <= most
      ? yes(value)
      : no(`expected a whole number from ${least} to ${most}`);
  return {
    word: 'number',
    parse: (given) => judge(/^[0-9]{1,15}$/.test(given) ? Number(given) : Number.NaN),
    write: String,
    fromToml(value) {
      if (typeof value === 'string') return this.parse(value);
      return judge(typeof value === 'number' ? value : Number.NaN);
    },
  };
}

/** From 1; none is said as `off` or 0, and is 0. */
export function numberOrOff(most: number): ValueType<number> {
  const whole = wholeNumber(0, most);
  return {
    word: 'number|off',
    parse: (given) => (given === 'off' ? yes(0) : whole.parse(given)),
    write: (value) => (value === 0 ? 'off' : String(value)),
    fromToml: (value) => (value === 'off' ? yes(0) : (whole.fromToml?.(value) ?? no('expected a number'))),
  };
}

/** Where an edge finds its control plane: `http://host:port`, `https://…` or `unix:/path/control.sock`. */
export const controlAddress: ValueType<string> = {
  word: 'address',
  parse(given) {
    if (/^unix:\/.+/.test(given)) return yes(given);
    const url = URL.canParse(given) ? new URL(given) : undefined;
    const bare =
      url !== undefined && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
    if (bare && (url.protocol === 'http:' || url.protocol === 'https:')) return yes(url.origin);
    return no('expected http://host:port, https://host:port or unix:/path/control.sock');
  },
  write: String,
};

/** A server of NATS: `nats://host:port`, or `tls://host:port` where the connection is to be encrypted; without a port 4222. */
export const natsAddress: ValueType<string> = {
  word: 'address',
  parse(given) {
    const [, scheme = '', rest = ''] = /^(nats|tls):\/\/(.+)$/.exec(given) ?? [];
    const parsed = hostAndPort.parse(/:\d+$/.test(rest) ? rest : `${rest}:4222`);
    if (scheme !== '' && parsed.ok && parsed.value.port > 0)
      return yes(`${scheme}://${hostAndPort.write(parsed.value)}`);
    return no('expected nats://host:port or tls://host:port, such as nats://127.0.0.1:4222');
  },
  write: String,
};

/** What subjects of NATS begin with. */
export const subjectName: ValueType<string> = {
  word: 'name',
  parse: (given) =>
    /^[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){0,3}$/.test(given)
      ? yes(given)
      : no('expected letters, digits, _ and -, at most 64, in up to four parts with dots between them, such as levee'),
  write: String,
};

/** An address, or a subnet in CIDR form without host bits; canonical. */
export const subnet: ValueType<string> = {
  word: 'subnet',
  parse(given) {
    const parsed = parsePrefix(given);
    return parsed.ok ? yes(formatPrefix(parsed.prefix)) : no(parsed.sentence);
  },
  write: String,
};

/** Where inner addresses of tunnels come from: a subnet of one family, of two pairs of addresses at least; canonical. */
export function addressPool(family: Family): ValueType<string> {
  const longest = longestPoolLengths[family];
  return {
    word: `IPv${family} subnet`,
    parse(given) {
      const parsed = parsePrefix(given);
      if (!parsed.ok) return no(parsed.sentence);
      const { prefix } = parsed;
      if (prefix.family === family && prefix.length <= longest) return yes(formatPrefix(prefix));
      return no(`expected an IPv${family} subnet of /${longest} or wider, received ${formatPrefix(prefix)}`);
    },
    write: String,
  };
}

export const postgresUrl: ValueType<string> = {
  word: 'URL',
  parse(given) {
    return /^postgres(?:ql)?:\/\/./.test(given)
      ? yes(given)
      : no('expected postgres://user:password@host:port/database');
  },
  write: String,
};

/** A device name as Linux takes it (dev_valid_name in net/core/dev.c). */
export const deviceName: ValueType<string> = {
  word: 'device',
  parse: (given) =>
    /^[^\s/:]{1,15}$/.test(given) && given !== '.' && given !== '..'
      ? yes(given)
      : no('expected the name of a network device: 1 to 15 characters without spaces, slashes and colons'),
  write: String,
};

/** A file name under /run/netns (ip-netns(8)). */
export const namespaceName: ValueType<string> = {
  word: 'name',
  parse: (given) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(given)
      ? yes(given)
      : no('expected the name of a network namespace as `ip netns list` shows it'),
  write: String,
};

/** Where gobgpd serves its interface: `unix:/path/gobgp.sock` or `host:port`; as gRPC takes it. */
export const gobgpAddress: ValueType<string> = {
  word: 'address',
  parse(given) {
    const socket = /^unix:(?:\/\/)?(\/.+)$/.exec(given)?.[1];
    if (socket !== undefined) return yes(`unix://${socket}`);
    const parsed = hostAndPort.parse(given);
    if (parsed.ok && parsed.value.port !== 0) return yes(hostAndPort.write(parsed.value));
    return no('expected unix:/path/gobgp.sock or host:port, such as 127.0.0.1:50051');
  },
  write: String,
};

/** RFC 8092. */
export const largeCommunity: ValueType<LargeCommunity> = {
  word: 'community',
  parse(given) {
    const [administrator, first, second, ...more] = given.split(':').map(communityPart);
    const isWhole = administrator !== undefined && first !== undefined && second !== undefined && more.length === 0;
    if (isWhole) return yes({ administrator, first, second });
    return no('expected a large community of three numbers up to 4294967295, such as 4200000000:17749:1');
  },
  write: ({ administrator, first, second }) => `${administrator}:${first}:${second}`,
};

function communityPart(text: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,9})$/.test(text) && Number(text) <= 0xffffffff ? Number(text) : undefined;
}

/** Canonical. */
export function addressOf(family: Family): ValueType<string> {
  return {
    word: `IPv${family} address`,
    parse(given) {
      const parsed = parseAddress(given);
      if (!parsed.ok) return no(parsed.sentence);
      if (parsed.address.family === family) return yes(formatAddress(parsed.address));
      return no(`expected an IPv${family} address, received ${formatAddress(parsed.address)}`);
    },
    write: String,
  };
}
