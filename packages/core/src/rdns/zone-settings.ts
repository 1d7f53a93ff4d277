/**
 * Reads what an operator says of a reverse zone: which driver keeps it and what that driver needs. Owns which field
 * belongs to which driver, and the canonical form that is stored. Never connects anywhere.
 */
import { formatAddress, parseAddress } from '../net/address.ts';
import { type Path, type Problem, problem, quote } from '../problem.ts';
import { parseHostName } from './host-name.ts';

export const zoneDrivers = ['embedded', 'rfc2136', 'powerdns'] as const;
export type ZoneDriver = (typeof zoneDrivers)[number];

/** RFC 8945, 6; hmac-md5 is there for old servers only and must not be used for new keys. */
export const tsigAlgorithms = ['hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512'] as const;
export type TsigAlgorithm = (typeof tsigAlgorithms)[number];

export interface TsigKey {
  readonly name: string;
  readonly algorithm: TsigAlgorithm;
  /** Base64. */
  readonly secret: string;
}

/** Canonical. Only members of its driver are there. */
export interface ZoneDriverSettings {
  /** `host:port` for rfc2136, a URL without a final slash for powerdns. */
  readonly server?: string;
  readonly tsig?: TsigKey;
  readonly api_key?: string;
  readonly nameservers?: readonly string[];
  /** A mailbox as in mail: `hostmaster@example.net`. */
  readonly admin?: string;
  /** `address:port`. */
  readonly secondaries?: readonly string[];
  readonly ttl: number;
}

/** The fields as given, each of the type that the wire's schema says; null takes away what was stored. */
export interface ZoneFields {
  readonly driver: ZoneDriver;
  readonly server?: string | null | undefined;
  readonly tsig?: TsigKey | null | undefined;
  readonly api_key?: string | null | undefined;
  readonly nameservers?: readonly string[] | null | undefined;
  readonly admin?: string | null | undefined;
  readonly secondaries?: readonly string[] | null | undefined;
  readonly ttl?: number | null | undefined;
}

export type ZoneSettingsResult =
  | { readonly ok: true; readonly settings: ZoneDriverSettings }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A corrected record is seen by everyone within five minutes. */
export const defaultTtlSeconds = 300;
export const dnsPort = 53;
const longestMailbox = 253;

type SettingName = Exclude<keyof ZoneFields, 'driver'>;

const fieldsOf: Readonly<Record<ZoneDriver, readonly SettingName[]>> = {
  embedded: ['nameservers', 'admin', 'secondaries', 'ttl'],
  rfc2136: ['server', 'tsig', 'nameservers', 'ttl'],
  powerdns: ['server', 'api_key', 'nameservers', 'ttl'],
};

/**
 * `before`: what was stored, for a change. Of it stays what is not given anew and what the driver still knows; what is
 * given must be the driver's.
 */
export function parseZoneSettings(fields: ZoneFields, before?: ZoneDriverSettings): ZoneSettingsResult {
  const problems: Problem[] = [];
  const { driver, ...given } = fields;
  const known = fieldsOf[driver];
  const value = <N extends SettingName>(name: N): ZoneFields[N] => {
    if (given[name] !== undefined) return given[name] as ZoneFields[N];
    return known.includes(name) ? (before?.[name] as ZoneFields[N]) : undefined;
  };
  for (const name of Object.keys(given) as SettingName[]) {
    if (given[name] === undefined || given[name] === null || known.includes(name)) continue;
    const sentence = `is not used by the driver ${driver}, which knows ${known.join(', ')}`;
    problems.push(problem([name], 'not_used', sentence));
  }
  const has = (name: SettingName) => known.includes(name);
  const server = has('server') ? readServer(driver, value('server'), problems) : undefined;
  const tsig = has('tsig') ? readTsig(value('tsig'), problems) : undefined;
  const apiKey = has('api_key') ? readApiKey(value('api_key'), problems) : undefined;
  const nameservers = has('nameservers') ? readNames(value('nameservers'), problems) : undefined;
  const admin = has('admin') ? readAdmin(value('admin'), problems) : undefined;
  const secondaries = has('secondaries') ? readSecondaries(value('secondaries'), problems) : undefined;
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    settings: {
      ...(server !== undefined && { server }),
      ...(tsig !== undefined && { tsig }),
      ...(apiKey !== undefined && { api_key: apiKey }),
      ...(nameservers !== undefined && { nameservers }),
      ...(admin !== undefined && { admin }),
      ...(secondaries !== undefined && { secondaries }),
      ttl: value('ttl') ?? defaultTtlSeconds,
    },
  };
}

/**
 * What is wrong with a change whatever was stored: `required` may be there already, and without a driver only that is
 * judged which no driver takes.
 */
export function judgeZoneChange({ driver, ...fields }: Partial<ZoneFields>): readonly Problem[] {
  if (driver !== undefined) {
    const parsed = parseZoneSettings({ driver, ...fields });
    return parsed.ok ? [] : parsed.problems.filter(({ code }) => code !== 'required');
  }
  const problems: Problem[] = [];
  readTsig(fields.tsig, problems);
  readNames(fields.nameservers, problems);
  readAdmin(fields.admin, problems);
  readSecondaries(fields.secondaries, problems);
  return problems;
}

export interface HostPort {
  /** A host name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** `host`, `host:port`, `address`, `address:port` or `[IPv6 address]:port`; undefined: none of them. */
export function parseHostPort(text: string, defaultPort: number): HostPort | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const bare = match === null && parseAddress(text).ok ? text : undefined;
  const hostText = bare ?? match?.[1] ?? match?.[2] ?? '';
  const port = match?.[3] === undefined ? defaultPort : Number(match[3]);
  if (port < 1 || port > 65535) return undefined;
  const address = parseAddress(hostText);
  if (address.ok) return { host: formatAddress(address.address), port };
  if (match?.[1] !== undefined) return undefined;
  const name = parseHostName(hostText);
  return name.ok ? { host: name.name, port } : undefined;
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function readServer(driver: ZoneDriver, given: string | null | undefined, problems: Problem[]): string | undefined {
  const allowed =
    driver === 'powerdns'
      ? "must be the address of PowerDNS' web server, such as http://192.0.2.53:8081"
      : "must be where the zone's primary server takes updates, such as 192.0.2.53:53 or ns1.example.net";
  if (given === undefined || given === null) {
    problems.push(problem(['server'], 'required', `is required by the driver ${driver}: it ${allowed}`));
    return undefined;
  }
  if (driver === 'powerdns') {
    const url = URL.parse(given);
    const plain = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
    if (plain && url.username === '' && url.password === '') return url.href.replace(/\/+$/, '');
    problems.push(
      problem(
        ['server'],
        'invalid_url',
        `${allowed}, without user, query or fragment; received ${quote(withoutUser(given))}`,
      ),
    );
    return undefined;
  }
  const read = parseHostPort(given, dnsPort);
  if (read !== undefined) return formatHostPort(read);
  problems.push(problem(['server'], 'invalid_server', `${allowed}; received ${quote(given)}`));
  return undefined;
}

/** A password before an @ is not repeated. */
function withoutUser(text: string): string {
  return text.replace(/\/\/[^/]*@/, '//…@');
}

function readTsig(given: TsigKey | null | undefined, problems: Problem[]): TsigKey | undefined {
  if (given === undefined || given === null) return undefined;
  const name = (given.name.endsWith('.') ? given.name.slice(0, -1) : given.name).toLowerCase();
  if (!/^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(name)) {
    const sentence = `must be the key's name as the server has it: labels of letters, digits, dashes and underscores; received ${quote(given.name)}`;
    problems.push(problem(['tsig', 'name'], 'malformed', sentence));
  }
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/.test(given.secret)) {
    const sentence = `must be base64, as tsig-keygen writes it; received ${given.secret.length} characters that are not`;
    problems.push(problem(['tsig', 'secret'], 'malformed', sentence));
  }
  return { name, algorithm: given.algorithm, secret: given.secret };
}

function readApiKey(given: string | null | undefined, problems: Problem[]): string | undefined {
  if (given !== undefined && given !== null) return given;
  problems.push(
    problem(['api_key'], 'required', 'is required by the driver powerdns: the api-key of its configuration'),
  );
  return undefined;
}

function readNames(given: readonly string[] | null | undefined, problems: Problem[]): string[] | undefined {
  if (given === undefined || given === null) return undefined;
  const names: string[] = [];
  for (const [index, text] of given.entries()) {
    const read = parseHostName(text);
    if (!read.ok) problems.push(problem(['nameservers', index], read.code, read.sentence));
    else if (names.includes(read.name)) problems.push(duplicate(['nameservers', index], read.name));
    else names.push(read.name);
  }
  return names;
}

function readAdmin(given: string | null | undefined, problems: Problem[]): string | undefined {
  if (given === undefined || given === null) return undefined;
  const at = given.lastIndexOf('@');
  const local = given.slice(0, at);
  const host = parseHostName(given.slice(at + 1));
  if (at > 0 && host.ok && /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,63}$/.test(local)) {
    const mailbox = `${local}@${host.name}`;
    // A Unicode host name grows; the SOA record holds no longer name (RFC 1035, 2.3.4).
    if (mailbox.length <= longestMailbox) return mailbox;
  }
  const sentence = `must be the mailbox of whoever looks after the zone, such as hostmaster@example.net, at most ${longestMailbox} characters with its host name as the DNS writes it; received ${quote(given)}`;
  problems.push(problem(['admin'], 'malformed', sentence));
  return undefined;
}

function readSecondaries(given: readonly string[] | null | undefined, problems: Problem[]): string[] | undefined {
  if (given === undefined || given === null) return undefined;
  const secondaries: string[] = [];
  for (const [index, text] of given.entries()) {
    const read = parseHostPort(text, dnsPort);
    const at = ['secondaries', index];
    if (read === undefined || !parseAddress(read.host).ok) {
      const sentence = `must be an address, with the port that takes NOTIFY when it is not 53, such as 192.0.2.54 or [2001:db8::54]:5353; received ${quote(text)}`;
      problems.push(problem(at, 'malformed', sentence));
      continue;
    }
    const canonical = formatHostPort(read);
    if (secondaries.includes(canonical)) problems.push(duplicate(at, canonical));
    else secondaries.push(canonical);
  }
  return secondaries;
}

function duplicate(path: Path, text: string): Problem {
  return problem(path, 'duplicate', `${text} is listed already`);
}

/** A mailbox as the SOA record holds it (RFC 1035, 8): octets that a label does not show as they are become `\DDD`. */
export function mailboxName(admin: string): string {
  const at = admin.lastIndexOf('@');
  const local = admin
    .slice(0, at)
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, (character) => `\\${String(character.charCodeAt(0)).padStart(3, '0')}`);
  return `${local}.${admin.slice(at + 1)}`;
}
