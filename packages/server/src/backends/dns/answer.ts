/**
 * Decides the answer to one message. A pure function of the message, the zones, and who asks over what; never throws,
 * whatever the octets. Transfers are only decided here: their messages come from transfer.ts.
 */
import { ednsOctets, MessageWriter, unknownKeyOctets } from './message-writer.ts';
import { labelsOf } from './name.ts';
import { classes, ednsUdpBytes, flags, opcodes, plainUdpBytes, rcodes, tcpBytes, types } from './protocol.ts';
import { type Query, type Question, readQuery } from './query.ts';
import { cutAbove, keyInZone, type ServedZone, type ServedZones } from './served-zones.ts';

/** What kind of answer it was: the counters' names. */
export type AnswerKind =
  | 'answer'
  /** A zone below was named, whose servers know. */
  | 'referral'
  | 'no_data'
  | 'name_error'
  | 'refused'
  | 'format_error'
  | 'not_implemented'
  | 'bad_version'
  | 'not_authoritative'
  /** A bug of ours. */
  | 'failed';

export type Reply =
  /** Nothing is sent. */
  | { readonly kind: 'none' }
  | { readonly kind: AnswerKind; readonly octets: Buffer; readonly truncated: boolean }
  /** Over TCP: the whole zone is to be sent. */
  | { readonly kind: 'transfer'; readonly query: Query; readonly question: Question; readonly zone: ServedZone };

export interface Asker {
  readonly transport: 'udp' | 'tcp';
  /** Canonical text. */
  readonly address: string;
  /** Answer with nothing but TC: come back over TCP. */
  readonly truncate?: boolean;
}

/** Reused: an answer is copied out of it. */
const scratch = Buffer.alloc(tcpBytes);
const writer = new MessageWriter();

export function answerMessage(zones: ServedZones, message: Uint8Array, asker: Asker): Reply {
  const read = readQuery(message);
  if (!read.ok) return read.answerable ? plain(read.query, asker, rcodes.formErr, 'format_error') : { kind: 'none' };
  const { query } = read;
  const { question } = query;
  if (query.opcode !== opcodes.query || question === undefined) {
    return plain(query, asker, rcodes.notImp, 'not_implemented');
  }
  if (query.edns !== undefined && query.edns.version > 0) return plain(query, asker, rcodes.badVers, 'bad_version');
  // No key is known here: a client that signs must not take an unsigned answer for its own.
  if (query.tsig !== undefined) return plain(query, asker, rcodes.notAuth, 'not_authoritative');
  if (asker.truncate === true) return truncated(query, asker, 'answer');
  if (question.class !== classes.in) return plain(query, asker, rcodes.refused, 'refused');
  if (question.type === types.axfr || question.type === types.ixfr) return transfer(zones, query, question, asker);
  if (isMeta(question.type)) {
    const mail = question.type === types.maila || question.type === types.mailb;
    return mail
      ? plain(query, asker, rcodes.notImp, 'not_implemented')
      : plain(query, asker, rcodes.formErr, 'format_error');
  }
  const zone = zoneFor(zones, question);
  if (zone === undefined) return plain(query, asker, rcodes.refused, 'refused');
  return fromZone(zones, zone, query, question, asker);
}

/** What DS there is stands above the cut (RFC 4035, 3.1.4.1): there is none, which the zone above says, if it is ours. */
function zoneFor(zones: ServedZones, { labels, type }: Question): ServedZone | undefined {
  const isApex = type === types.ds && zones.get(labels.join('.')) !== undefined;
  return (isApex ? zones.find(labels.slice(1)) : undefined) ?? zones.find(labels);
}

/** Types that are no data (RFC 6895, 3.1), besides ANY. */
function isMeta(type: number): boolean {
  return type === types.opt || (type >= 128 && type < types.any);
}

function fromZone(zones: ServedZones, zone: ServedZone, query: Query, question: Question, asker: Asker): Reply {
  const { labels, type } = question;
  const cut = referralOf(zone, labels, type);
  begin(query, asker, rcodes.noError, cut === undefined ? flags.authoritative : 0);
  if (cut !== undefined) return finish(query, asker, 'referral', writeReferral(zone, cut));
  const alias = aliasAt(zone, labels);
  if (alias === undefined || type === types.cname || type === types.any) {
    const { kind, whole } = writeFrom(zones, zone, labels, type);
    return finish(query, asker, kind, whole);
  }
  const written = writer.name('answer', labels.join('.'), types.cname, zone.settings.ttlSeconds, alias);
  return written ? followAlias(zones, query, asker, labelsOf(alias), type) : truncated(query, asker, 'answer');
}

/** RFC 1034, 4.3.2, 3a: the same question of the other name, as far as it is ours. An alias of an alias is not followed. */
function followAlias(zones: ServedZones, query: Query, asker: Asker, labels: readonly string[], type: number): Reply {
  const zone = zones.find(labels);
  if (zone === undefined || aliasAt(zone, labels) !== undefined) return finish(query, asker, 'answer', true);
  const cut = referralOf(zone, labels, type);
  if (cut !== undefined) return finish(query, asker, 'answer', writeReferral(zone, cut));
  const { kind, whole } = writeFrom(zones, zone, labels, type);
  return finish(query, asker, kind, whole);
}

type Cut = NonNullable<ReturnType<typeof cutAbove>>;

function referralOf(zone: ServedZone, labels: readonly string[], type: number): Cut | undefined {
  const cut = cutAbove(zone, labels);
  return type === types.ds && cut?.labels.length === labels.length ? undefined : cut;
}

function writeReferral({ settings }: ServedZone, { labels, nameservers }: Cut): boolean {
  const owner = labels.join('.');
  return nameservers.every((name) => writer.name('authority', owner, types.ns, settings.ttlSeconds, name));
}

function aliasAt(zone: ServedZone, labels: readonly string[]): string | undefined {
  const data = labels.length === zone.labelCount ? undefined : zone.records.get(keyInZone(zone, labels));
  return typeof data === 'object' && 'alias' in data ? data.alias : undefined;
}

/** What the zone itself says of a name that is neither below a cut nor led elsewhere. `whole` false: no room. */
function writeFrom(
  zones: ServedZones,
  zone: ServedZone,
  labels: readonly string[],
  type: number,
): { readonly kind: AnswerKind; readonly whole: boolean } {
  const { settings } = zone;
  const { ttlSeconds } = settings;
  const owner = labels.join('.');
  // ANY gets one set of what is there, not all of it (RFC 8482, 4.1).
  if (labels.length === zone.labelCount) {
    if (type === types.soa || type === types.any) {
      return { kind: 'answer', whole: writer.startOfAuthority('answer', owner, ttlSeconds, settings) };
    }
    if (type === types.ns) {
      const whole = settings.nameservers.every((name) => writer.name('answer', owner, types.ns, ttlSeconds, name));
      return { kind: 'answer', whole };
    }
  } else {
    const data = zone.records.get(keyInZone(zone, labels));
    const [target, own] = typeof data === 'string' ? [data, types.ptr] : [aliasAt(zone, labels), types.cname];
    if (target !== undefined && (type === own || type === types.any)) {
      return { kind: 'answer', whole: writer.name('answer', owner, own, ttlSeconds, target) };
    }
  }
  const exists = zones.exists(zone, labels);
  if (!exists) writer.flag(rcodes.nxDomain);
  // RFC 2308, 3 and 5: the SOA says how long to remember it.
  const negativeSeconds = Math.min(ttlSeconds, settings.minimumSeconds);
  const whole = writer.startOfAuthority('authority', settings.name, negativeSeconds, settings);
  return { kind: exists ? 'no_data' : 'name_error', whole };
}

function transfer(zones: ServedZones, query: Query, question: Question, asker: Asker): Reply {
  const overUdp = asker.transport === 'udp';
  // RFC 5936, 4.2: there is no AXFR over UDP. An IXFR carries what its client has (RFC 1995, 3).
  const broken = question.type === types.axfr ? overUdp : query.serial === undefined;
  if (broken) return plain(query, asker, rcodes.formErr, 'format_error');
  const zone = zones.get(question.labels.join('.'));
  if (zone === undefined) {
    // Not told apart for strangers: which zones there are is nobody's business but the secondaries'.
    return plain(query, asker, rcodes.refused, 'refused');
  }
  const { settings } = zone;
  if (!settings.secondaries.some(({ address }) => address === asker.address)) {
    return plain(query, asker, rcodes.refused, 'refused');
  }
  const upToDate = query.serial !== undefined && !isNewer(settings.serial, query.serial);
  if (question.type === types.axfr || !(upToDate || overUdp)) return { kind: 'transfer', query, question, zone };
  // RFC 1995, 2: our SOA alone says "nothing new", or over UDP "come by TCP".
  begin(query, asker, rcodes.noError, flags.authoritative);
  const whole = writer.startOfAuthority('answer', settings.name, settings.ttlSeconds, settings);
  return finish(query, asker, 'answer', whole);
}

/** RFC 1982, 3.2. */
export function isNewer(serial: number, than: number): boolean {
  const ahead = (serial - than) >>> 0;
  return ahead !== 0 && ahead < 0x8000_0000;
}

/** No record but what the code itself brings. */
function plain(query: Query, asker: Asker, rcode: number, kind: AnswerKind): Reply {
  begin(query, asker, rcode, 0);
  return finish(query, asker, kind, true, rcode);
}

function truncated(query: Query, asker: Asker, kind: AnswerKind): Reply {
  begin(query, asker, rcodes.noError, flags.authoritative | flags.truncated);
  return close(query, asker, kind, true);
}

function begin(query: Query, asker: Asker, rcode: number, bits: number): void {
  const { id, opcode, recursionDesired, question } = query;
  const word = flags.response | (opcode << 11) | bits | (recursionDesired ? flags.recursionDesired : 0) | (rcode & 15);
  writer.start(scratch, sizeLimit(query, asker), id, word, question);
  if (query.edns !== undefined) writer.reserve(ednsOctets);
}

function sizeLimit(query: Query, asker: Asker): number {
  if (asker.transport === 'tcp') return tcpBytes;
  return query.edns === undefined ? plainUdpBytes : Math.min(query.edns.udpBytes, ednsUdpBytes);
}

/** @param whole false: what has been written is not the whole answer, and nothing of it is sent. */
function finish(query: Query, asker: Asker, kind: AnswerKind, whole: boolean, rcode: number = rcodes.noError): Reply {
  return whole ? close(query, asker, kind, false, rcode) : truncated(query, asker, kind);
}

function close(
  query: Query,
  asker: Asker,
  kind: AnswerKind,
  isTruncated: boolean,
  rcode: number = rcodes.noError,
): Reply {
  if (query.edns !== undefined) writer.edns(query.edns, ednsUdpBytes, rcode);
  if (kind === 'not_authoritative' && query.tsig !== undefined) {
    const room = sizeLimit(query, asker) - writer.finish().length;
    if (unknownKeyOctets(query.tsig) <= room) writer.unknownKey(query.tsig);
  }
  return { kind, octets: Buffer.from(writer.finish()), truncated: isTruncated };
}
