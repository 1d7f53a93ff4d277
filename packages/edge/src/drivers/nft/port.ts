/**
 * What the edge asks of nftables: the two ports that the real drivers, and the fakes of the tests, implement. Nothing
 * here knows which table or rules are meant.
 */

export type NftResult =
  | { readonly ok: true; readonly output: string }
  /** `message`: nft's own words, several lines; nothing was changed. */
  | { readonly ok: false; readonly message: string };

/** One command at a time: callers may overlap calls, the driver runs them in order. */
export interface NftDriver {
  readonly name: 'library' | 'command' | 'fake';
  /** Of nftables, as `1.0.6`. */
  readonly version: string;
  /** Runs one transaction: all of it, or nothing. */
  apply(text: string): Promise<NftResult>;
  /** Has the kernel judge a transaction without keeping it. */
  check(text: string): Promise<NftResult>;
  /** `list` with what follows it, such as `chain inet levee c4_…`. */
  list(what: string): Promise<NftResult>;
  close(): Promise<void>;
}

export interface ChainCounter {
  readonly packets: number;
  readonly bytes: number;
}

export interface ElementCounter extends ChainCounter {
  /** The key's bytes in hexadecimal. */
  readonly key: string;
  /** The chain that the element's verdict goes to, where it has one. */
  readonly chain: string | undefined;
}

/** Reads of the kernel that do not go through nft: three microseconds instead of tens of milliseconds. */
export interface NftKernel {
  /** Rises with each transaction in the namespace, whoever made it. */
  generation(): number;
  /** Whether there is a table of our name. */
  isTableLoaded(): boolean;
  /** Counters of a chain's counted rules, in order; none when there is no such chain. */
  chainCounters(chain: string): readonly ChainCounter[];
  /** Comments of a chain's rules, in order; none when there is no such chain. */
  comments(chain: string): readonly string[];
  /**
   * Counters of all chains of the table (some 6 µs a rule), gathered in slices of two milliseconds. `gentle`: with rests
   * between them, for a reading that nobody waits for.
   */
  allChainCounters(pace: 'quick' | 'gentle'): Promise<ReadonlyMap<string, readonly ChainCounter[]>>;
  /** Elements of a set or map; undefined when there is no such set. */
  elements(set: string): Promise<readonly ElementCounter[] | undefined>;
  /**
   * Brackets a transaction of our own, so that its notices are known as ours. `whole`: it is a full load, whose notices
   * would be many times what can be kept.
   */
  beginOwn(whole: boolean): void;
  endOwn(): void;
  /**
   * Whether somebody else's transaction touched a table of our name since the last look; `lost`: the kernel dropped
   * notices, so nobody knows.
   */
  foreignChange(): 'none' | 'changed' | 'lost';
  close(): void;
}
