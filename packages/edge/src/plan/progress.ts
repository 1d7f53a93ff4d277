/**
 * Up to which cursor everything is done. Entries and tunnels get on each at its own pace, a cursor covers both: owns the
 * points in between. Holds up nothing but the acknowledgement.
 */
export interface Point {
  readonly cursor: string;
  /** The cursor covers every kind of object; else rules alone. */
  readonly complete: boolean;
}

export interface Progress {
  /** Work was taken that leads to this point. Its tunnels are there once this token of theirs is applied; it never falls. */
  begin(point: Point, tunnelToken: number): void;
  /** All rules and filters of the work that was begun are in force, or among the failures. */
  entriesDone(): void;
  /** The last point at which all is done; undefined: none yet. */
  reached(tunnelsApplied: number): Point | undefined;
  /** Whether entries have got further than that, and tunnels alone hold it back. */
  waitsForTunnels(tunnelsApplied: number): boolean;
}

export function createProgress(): Progress {
  /** In order; those that are reached have left. */
  const ahead: { readonly point: Point; readonly number: number; readonly tunnelToken: number }[] = [];
  let begun = 0;
  let done = 0;
  let last: Point | undefined;
  const reached = (tunnelsApplied: number): Point | undefined => {
    for (let next = ahead[0]; next && next.number <= done && next.tunnelToken <= tunnelsApplied; next = ahead[0]) {
      last = next.point;
      ahead.shift();
    }
    return last;
  };
  return {
    begin(point, tunnelToken) {
      begun += 1;
      ahead.push({ point, number: begun, tunnelToken });
    },
    entriesDone() {
      done = begun;
    },
    reached,
    waitsForTunnels(tunnelsApplied) {
      reached(tunnelsApplied);
      return ahead[0] !== undefined && ahead[0].number <= done;
    },
  };
}
