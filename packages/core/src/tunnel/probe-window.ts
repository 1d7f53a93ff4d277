/**
 * What the probes of one end of a tunnel found in the last minutes, kept as sums by the minute: small enough for a row,
 * exact but for the edge of the oldest minute. Pure: times are arguments.
 */

/** What was found since the previous report. */
export interface ProbeFinding {
  readonly sent: number;
  /** May be more than were sent: answers to earlier ones come late. */
  readonly received: number;
  /** Of those received, milliseconds. */
  readonly rtt?: RoundTrips | undefined;
}

export interface RoundTrips {
  readonly min: number;
  readonly avg: number;
  readonly max: number;
}

/** As it is stored. `minute`: its beginning, milliseconds since 1970; `sum`: of all round trips, milliseconds. */
export interface ProbeMinute {
  readonly minute: number;
  readonly sent: number;
  readonly received: number;
  readonly rtt?: { readonly min: number; readonly sum: number; readonly max: number };
}

export interface ProbeSummary {
  /** 0 to 100, to the tenth. */
  readonly lossPercent: number;
  /** Milliseconds, to the thousandth; absent: nothing was answered. */
  readonly rtt?: RoundTrips;
}

/** The present minute and those before it. */
export const probeWindowMinutes = 5;
const minuteMilliseconds = 60_000;

/** The window with one more finding of the time `at`, milliseconds since 1970; what is too old for it is gone. */
export function addFinding(window: readonly ProbeMinute[], finding: ProbeFinding, at: number): readonly ProbeMinute[] {
  const minute = Math.floor(at / minuteMilliseconds) * minuteMilliseconds;
  const kept = window.filter((each) => each.minute > minute - probeWindowMinutes * minuteMilliseconds);
  const { sent, received, rtt } = finding;
  const trips = rtt === undefined ? undefined : { min: rtt.min, sum: rtt.avg * received, max: rtt.max };
  const added = { minute, sent, received, ...(trips !== undefined && { rtt: trips }) };
  const last = kept.at(-1);
  return last?.minute === minute ? [...kept.slice(0, -1), { ...sumOf([last, added]), minute }] : [...kept, added];
}

/** Undefined: nothing was sent. */
export function summarise(window: readonly ProbeMinute[]): ProbeSummary | undefined {
  const { sent, received, rtt } = sumOf(window);
  if (sent === 0) return undefined;
  const lossPercent = rounded(100 * Math.max(0, 1 - received / sent), 10);
  if (rtt === undefined || received === 0) return { lossPercent };
  return {
    lossPercent,
    rtt: { min: rounded(rtt.min, 1000), avg: rounded(rtt.sum / received, 1000), max: rounded(rtt.max, 1000) },
  };
}

function sumOf(minutes: readonly ProbeMinute[]): Omit<ProbeMinute, 'minute'> {
  const trips = minutes.flatMap(({ rtt }) => (rtt === undefined ? [] : [rtt]));
  const rtt = {
    min: Math.min(...trips.map(({ min }) => min)),
    sum: trips.reduce((sum, each) => sum + each.sum, 0),
    max: Math.max(...trips.map(({ max }) => max)),
  };
  return {
    sent: minutes.reduce((sum, each) => sum + each.sent, 0),
    received: minutes.reduce((sum, each) => sum + each.received, 0),
    ...(trips.length > 0 && { rtt }),
  };
}

function rounded(value: number, parts: number): number {
  return Math.round(value * parts) / parts;
}
