/**
 * Traffic of some seconds of which everything is known: background, a crowd, attacks, each to destinations of its own. Owns how
 * much of what there is; the same seed gives the same packets. Must never send.
 */

import { hardwareBytes } from '../packet-spec.ts';
import { Random } from '../random.ts';
import { hardwareAddress } from '../router-path.ts';
import { type Attack, addAttack } from './attack.ts';
import { answerName, answerTime, fetchByQuic, fetchPage, type Habit, ping, playGame, visitWeb } from './clients.ts';
import { placeOf } from './place.ts';
import { Schedule, type TrafficStream } from './schedule.ts';

export interface TrafficOptions {
  /** Any text. */
  readonly seed: string;
  readonly forMs: number;
  readonly background: {
    readonly hosts: readonly string[];
    /** Of all hosts together, about. */
    readonly packetsPerSecond: number;
  };
  /** Many visitors of one web server at once: they rise over a second, and stay. */
  readonly crowd?: { readonly host: string; readonly fromMs: number; readonly packetsPerSecond: number };
  readonly attacks: readonly Attack[];
}

export interface LabelledTraffic {
  readonly schedule: Schedule;
  /** In the order of `attacks`. */
  readonly attacks: readonly TrafficStream[];
  readonly innocent: readonly TrafficStream[];
}

/** What a host's day is made of, by about how many packets each is. */
const habits: readonly (readonly [share: number, packets: number, habit: Habit])[] = [
  [0.3, 24, visitWeb],
  [0.3, 25, fetchPage],
  [0.06, 1, answerName],
  [0.02, 1, answerTime],
  [0.2, 18, fetchByQuic],
  [0.02, 5, ping],
];
/** The rest: players, who come and stay. */
const gameShare = 0.1;
const gamePacketsPerSecond = 30;
const visitPackets = 24;

export function labelledTraffic(options: TrafficOptions): LabelledTraffic {
  const schedule = new Schedule();
  const random = new Random(options.seed);
  const innocent = options.background.hosts.map((host) =>
    addBackground(
      schedule,
      host,
      options.background.packetsPerSecond / options.background.hosts.length,
      options.forMs,
      random,
    ),
  );
  if (options.crowd) innocent.push(addCrowd(schedule, options.crowd, options.forMs, random));
  const attacks = options.attacks.map((attack, number) => {
    schedule.addUncounted(attack.fromMs, marker(number));
    return addAttack(schedule, attack, random);
  });
  return { schedule, attacks, innocent };
}

function addBackground(schedule: Schedule, text: string, rate: number, forMs: number, random: Random): TrafficStream {
  const stream = schedule.stream('background', text, false);
  const host = placeOf(text);
  const talk = { schedule, stream, host, endMs: forMs, random };
  for (const [share, packets, habit] of habits) {
    for (const atMs of arrivals(random, (rate * share) / packets, 0, forMs)) {
      habit({ ...talk, client: random.integer(0, 1 << 20), atMs });
    }
  }
  for (let player = Math.round((rate * gameShare) / gamePacketsPerSecond); player > 0; player--) {
    playGame({ ...talk, client: random.integer(0, 1 << 20), atMs: random.integer(0, 40) });
  }
  return stream;
}

function addCrowd(
  schedule: Schedule,
  crowd: NonNullable<TrafficOptions['crowd']>,
  forMs: number,
  random: Random,
): TrafficStream {
  const stream = schedule.stream('crowd', crowd.host, false);
  const host = placeOf(crowd.host);
  const rate = crowd.packetsPerSecond / visitPackets;
  const arriving = [
    ...arrivals(random, rate / 2, crowd.fromMs, crowd.fromMs + 1000),
    ...arrivals(random, rate, crowd.fromMs + 1000, forMs),
  ];
  for (const [client, atMs] of arriving.entries())
    visitWeb({ schedule, stream, host, endMs: forMs, random, client, atMs });
  return stream;
}

/** Moments of a Poisson process. */
function arrivals(random: Random, perSecond: number, fromMs: number, untilMs: number): number[] {
  const found: number[] = [];
  let at = fromMs;
  for (;;) {
    at += (-Math.log(1 - random.integer(0, 999_999) / 1e6) / perSecond) * 1000;
    if (at >= untilMs) return found;
    found.push(at);
  }
}

/** Ethertype for experiments (IEEE 802): no router forwards it. */
export const markerEthertype = 0x88b5;

/** A frame that goes just before the first packet of an attack: whoever captures it knows when that was. */
function marker(number: number): Uint8Array {
  const frame = new Uint8Array(60);
  frame.set(hardwareBytes(hardwareAddress.routerOutside), 0);
  frame.set(hardwareBytes(hardwareAddress.attacker), 6);
  const view = new DataView(frame.buffer);
  view.setUint16(12, markerEthertype);
  view.setUint16(14, number);
  return frame;
}

/** Which attack a marker is of. */
export function markedAttack(frame: Uint8Array): number | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  return frame.length >= 16 && view.getUint16(12) === markerEthertype ? view.getUint16(14) : undefined;
}
