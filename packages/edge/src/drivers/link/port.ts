/**
 * What the edge asks of the kernel's links, addresses and routes: the port that ip(8), and the fake of the tests,
 * implement. Nothing here knows which devices are tunnels.
 */

export interface Route {
  /** Canonical, always with its length. */
  readonly prefix: string;
  readonly via: string | undefined;
  /** Of several routes to one subnet the kernel takes the one with the lowest. */
  readonly metric: number;
}

/** What becomes of packets to a subnet: they leave by a device, or a route says that they are to be discarded. */
export type TakenRoute =
  | {
      readonly discards: false;
      /** Of several next hops the first. */
      readonly device: string | undefined;
      readonly via: string | undefined;
      /** As ip(8) calls it: `bgp`, `static`, `kernel`, a number. */
      readonly protocol: string;
      readonly metric: number;
    }
  | { readonly discards: true };

export interface Link {
  readonly name: string;
  readonly alias: string | undefined;
  /** `gre`, `ip6gre`, `geneve` …; undefined: a device that says no kind. */
  readonly kind: string | undefined;
  readonly up: boolean;
  readonly mtu: number;
  readonly group: number;
  /** As ip(8) lists what is proper to the kind: ends, keys and the like. */
  readonly details: Readonly<Record<string, unknown>>;
  /** `10.48.0.2/31`; those of link-local scope are left out. */
  readonly addresses: readonly string[];
  /** Those with the protocol number that was asked for. */
  readonly routes: readonly Route[];
}

export interface LinkDriver {
  /** All links. Throws an Error with a sentence when the kernel cannot be asked. */
  look(): Promise<readonly Link[]>;
  /** Whether packets to the address are the machine's own, also where no link lists it. */
  isLocal(address: string): Promise<boolean>;
  /**
   * Of each subnet, the route that the kernel takes, by whomever it was made: asked for its first and last address, so
   * that it costs the same beside a million routes. Absent: neither is sent by a route to this very subnet in the main table.
   * `discards`: for neither the kernel has a way, because of a route that says so, to this subnet or to a wider one.
   */
  taken(prefixes: readonly string[]): Promise<ReadonlyMap<string, TakenRoute>>;
  /** Names of all links, read without ip(8). */
  names(): readonly string[];
  /**
   * Commands as ip-link(8), ip-address(8) and ip-route(8) take them, in order, in one program; one that fails keeps no other
   * back. For each: undefined, or what went wrong in ip's own words. Throws when they cannot be run.
   */
  run(lines: readonly string[]): Promise<readonly (string | undefined)[]>;
}
