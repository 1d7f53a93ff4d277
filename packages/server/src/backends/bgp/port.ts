/**
 * What Levee asks of a BGP speaker: announce routes, withdraw them, say which it has. Routes are compiled already; a
 * driver never makes, changes or judges one, and never touches what bears no mark of ours.
 */
import type { BgpRoute, RouteKey } from '@levee/core/flowspec/bgp-route.ts';

/** The speaker as a whole: nothing is known of what it has. */
export interface SpeakerTrouble {
  readonly ok: false;
  /** A sentence for the operator. */
  readonly reason: string;
}

export interface RoutesTaken {
  readonly ok: true;
  /** Sentences by route; it has taken all others. */
  readonly refused: ReadonlyMap<RouteKey, string>;
}

export interface RoutesListed {
  readonly ok: true;
  /** Ours, by our mark: what their attributes say (core's `routeContent`). */
  readonly ours: ReadonlyMap<RouteKey, string>;
  /** Announced through the same speaker by others: ours would replace them, and a withdrawal take them away. */
  readonly foreign: ReadonlySet<RouteKey>;
}

export interface SpeakerPeer {
  readonly address: string;
  readonly asn: number | undefined;
  readonly established: boolean;
}

/** As it was compiled, where that is known. */
export type WithdrawnRoute = BgpRoute | { readonly key: RouteKey };

/** One connection to a speaker that runs. Whatever it was told is gone from a speaker that was started again. */
export interface SpeakerSession {
  /** Of the program or its interface, for the operator. */
  readonly version: string;
  /** In batches. Those that it has already are replaced. Never throws. */
  announce(routes: readonly BgpRoute[]): Promise<RoutesTaken | SpeakerTrouble>;
  /** One that it has not is no failure. Never throws. */
  withdraw(routes: readonly WithdrawnRoute[]): Promise<RoutesTaken | SpeakerTrouble>;
  /** As it is now: of these, or everything. Never throws. */
  list(keys?: readonly RouteKey[]): Promise<RoutesListed | SpeakerTrouble>;
  /** Undefined: the speaker does not tell. */
  peers(): readonly SpeakerPeer[] | undefined;
  /** Resolves with a sentence when the session is of no more use; at once when the speaker goes. */
  readonly ended: Promise<string>;
  close(): void;
}

export interface BgpSpeaker {
  /** As an operator knows it. */
  readonly name: 'GoBGP' | 'ExaBGP';
  /** Where it is reached. */
  readonly where: string;
  /** `onPeers`: a peer came or went. Never throws; a speaker that is away is a trouble within two seconds. */
  connect(onPeers: () => void): Promise<{ readonly ok: true; readonly session: SpeakerSession } | SpeakerTrouble>;
  close(): Promise<void>;
}
