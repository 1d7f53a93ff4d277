/**
 * A DNS server that keeps one reverse zone, as the reconciler sees it. Names are lower case, without the final dot. What
 * goes wrong out there is a value; only bugs throw. A server writes PTR records of the names it is told of, and nothing
 * else in the zone.
 */

/** The name's PTR records are to be this one, or none. */
export interface PtrChange {
  readonly owner: string;
  readonly target: string | undefined;
}

/**
 * What keeps the whole zone from being changed. `away`: no answer, or one that says to come back later. `refused`: an
 * answer that someone must look into (a key, a zone that is not there, a right). The reason is part of a sentence that
 * customers read: no secrets, no addresses of servers.
 */
export interface Trouble {
  readonly ok: false;
  readonly trouble: 'away' | 'refused';
  readonly reason: string;
}

/** How many messages may yet be sent to find out which of several changes are refused; counted down. */
export interface Budget {
  left: number;
}

export type Applied =
  /**
   * All changes are served, but for those of the owners in `refused`, with the reason (a sentence), and in `untried`, of
   * which nothing is known but that they were sent together with refused ones.
   */
  | { readonly ok: true; readonly refused: ReadonlyMap<string, string>; readonly untried: ReadonlySet<string> }
  /** Any part of the changes may have been carried out. Carrying them out again does no harm. */
  | Trouble;

export type ReadBack =
  /** What is served now; an owner about which the server says nothing is missing. */
  { readonly ok: true; readonly targets: ReadonlyMap<string, readonly string[]> } | Trouble;

export interface ZoneServer {
  /** Owners are distinct. Resolves when the server has the changes. Those in front are tried first. */
  apply(changes: readonly PtrChange[], budget: Budget): Promise<Applied>;
  readBack(owners: readonly string[]): Promise<ReadBack>;
  /** Whether the server is there and has the zone. */
  probe(): Promise<{ readonly ok: true } | Trouble>;
  /** What is under way fails. Idempotent. */
  close(): void;
}

export const away = (reason: string): Trouble => ({ ok: false, trouble: 'away', reason });
export const refusedAll = (reason: string): Trouble => ({ ok: false, trouble: 'refused', reason });
