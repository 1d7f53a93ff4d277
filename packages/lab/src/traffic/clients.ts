/**
 * What protected hosts get on a good day, seen where it enters the network: visits to web servers, pages that users behind it
 * fetch, answers of name and time servers, QUIC, games, pings. Owns the conversations. Only the direction towards the
 * protected hosts is there, as an exporter at the uplink sees it. Must never be an attack.
 */
import { buildFrame } from '../packet-build.ts';
import type { PacketSpec, Transport } from '../packet-spec.ts';
import type { Random } from '../random.ts';
import { hardwareAddress } from '../router-path.ts';
import { outsider, type Place } from './place.ts';
import type { Schedule, TrafficStream } from './schedule.ts';

const FIN = 1;
const SYN = 2;
const PSH = 8;
const ACK = 16;

/** Somebody outside who talks with one protected host, from one moment on. */
export interface Conversation {
  readonly schedule: Schedule;
  readonly stream: TrafficStream;
  readonly host: Place;
  /** Who it is: the same number is the same address. */
  readonly client: number;
  readonly atMs: number;
  /** Nothing of it goes later. */
  readonly endMs: number;
  readonly random: Random;
}

export type Habit = (talk: Conversation) => void;

/** SYN, ACK, a request, an ACK for every second segment that comes back, FIN, ACK. */
export function visitWeb(talk: Conversation): void {
  const { random } = talk;
  const tcp = connection(talk, random.integer(32768, 60999), 443);
  const roundTrip = random.integer(8, 60);
  let at = talk.atMs;
  tcp(at, SYN, 0);
  at += roundTrip;
  tcp(at, ACK, 0);
  for (let request = random.integer(1, 3); request > 0; request--) {
    tcp(at, ACK | PSH, random.integer(300, 900));
    at += roundTrip;
    for (let acknowledged = random.integer(3, 12); acknowledged > 0; acknowledged--) {
      tcp(at, ACK, 0);
      at += random.integer(1, 12);
    }
  }
  tcp(at, ACK | FIN, 0);
  tcp(at + roundTrip, ACK, 0);
}

/** A page comes to somebody behind the protected address: SYN-ACK, full segments, FIN. */
export function fetchPage(talk: Conversation): void {
  const { random } = talk;
  const tcp = connection(talk, 443, random.integer(32768, 60999));
  let at = talk.atMs;
  tcp(at, SYN | ACK, 0);
  for (let segment = random.integer(6, 40); segment > 0; segment--) {
    at += random.integer(0, 6);
    tcp(at, segment % 8 === 1 ? ACK | PSH : ACK, 1400);
  }
  tcp(at + 5, ACK | FIN, 0);
}

export function answerName(talk: Conversation): void {
  udp(talk, talk.atMs, 53, talk.random.integer(1024, 65535), talk.random.integer(70, 420));
}

export function answerTime(talk: Conversation): void {
  udp(talk, talk.atMs, 123, 123, 48);
}

/** A page over QUIC, to somebody behind the protected address. */
export function fetchByQuic(talk: Conversation): void {
  const { random } = talk;
  const port = random.integer(32768, 60999);
  let at = talk.atMs;
  udp(talk, at, 443, port, 1200);
  for (let datagram = random.integer(5, 30); datagram > 0; datagram--) {
    at += random.integer(0, 8);
    udp(talk, at, 443, port, random.integer(900, 1252));
  }
}

/** A player's updates to the game server: some thirty a second for as long as there is time. */
export function playGame(talk: Conversation): void {
  const { random } = talk;
  const port = random.integer(32768, 60999);
  for (let at = talk.atMs; at < talk.endMs; at += random.integer(25, 41)) {
    udp(talk, at, port, 27015, random.integer(30, 90));
  }
}

export function ping(talk: Conversation): void {
  const type = talk.host.family === 4 ? 8 : 128;
  const identifier = talk.random.integer(0, 65535);
  for (let at = talk.atMs, left = 5; left > 0; at += 1000, left--) {
    send(talk, at, { kind: 'icmp', type, code: 0, identifier }, 8 + 56);
  }
}

type Segment = (atMs: number, flags: number, payload: number) => void;

function connection(talk: Conversation, sourcePort: number, destinationPort: number): Segment {
  let sequence = talk.random.word();
  return (atMs, flags, payload) => {
    const options = flags & SYN ? Uint8Array.of(2, 4, 5, 180, 4, 2, 1, 3, 3, 7) : Uint8Array.of(1, 1, 1, 0);
    const header = 20 + ((options.length + 3) & ~3);
    send(talk, atMs, { kind: 'tcp', sourcePort, destinationPort, flags, sequence, options }, header + payload);
    sequence = (sequence + payload + (flags & (SYN | FIN) ? 1 : 0)) >>> 0;
  };
}

function udp(talk: Conversation, atMs: number, sourcePort: number, destinationPort: number, payload: number): void {
  send(talk, atMs, { kind: 'udp', sourcePort, destinationPort }, 8 + payload);
}

function send(talk: Conversation, atMs: number, transport: Transport, length: number): void {
  if (atMs >= talk.endMs) return;
  const { family, value } = talk.host;
  const spec: PacketSpec = {
    family,
    source: outsider(family, talk.client),
    destination: value,
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id: talk.random.integer(0, 65535),
    hops: 40 + (talk.client % 24),
    transport,
    totalLength: (family === 4 ? 20 : 40) + length,
  };
  talk.schedule.add(talk.stream, atMs, buildFrame(spec));
}
