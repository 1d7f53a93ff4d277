/**
 * How the embedded DNS server is given the zones that it serves. The source pushes: first every zone whole, then what
 * changes, in order; the server keeps its own copy and answers from that alone, so that it goes on while the database
 * is away. Never asks a question back.
 *
 * Names are text: labels joined by dots, lower case, without the final dot, `7.113.0.203.in-addr.arpa`. An octet
 * outside a–z, 0–9, `-`, `_` and `/` is written `\DDD` (RFC 1035, 5.1).
 */

/** What a zone is besides its records: SOA, NS, and who takes copies of it. */
export interface ZoneSettings {
  readonly name: string;
  /**
   * 0 … 4294967295, rising with every change of the zone in the sense of RFC 1982, and the same for the same content on
   * every replica: secondaries take turns between replicas.
   */
  readonly serial: number;
  /** SOA MNAME, a host name. */
  readonly primary: string;
  /** SOA RNAME: the mailbox as a name, `hostmaster.example.net`; a dot in the local part is `\046`. */
  readonly mailbox: string;
  readonly refreshSeconds: number;
  readonly retrySeconds: number;
  readonly expireSeconds: number;
  /** How long others may remember that a name does not exist (RFC 2308). */
  readonly minimumSeconds: number;
  /** Of every record, SOA and NS included. */
  readonly ttlSeconds: number;
  /** NS of the zone; at least one (a zone without is no zone, RFC 1035, 5.2). */
  readonly nameservers: readonly string[];
  readonly secondaries: readonly Secondary[];
}

/** A server that may take the zone by AXFR, from any port, and is told of changes at `port`. */
export interface Secondary {
  /** One IPv4 or IPv6 address. */
  readonly address: string;
  readonly port: number;
}

/** What stands at a name: the host name of its PTR record, a CNAME record, or the NS records of a zone that begins there. */
export type RecordData = string | { readonly alias: string } | { readonly nameservers: readonly string[] };

/** Owner name (whole, inside the zone, not the zone's own) and what stands there: one thing a name. */
export type ZoneRecord = readonly [owner: string, data: RecordData];

/** Never throws. What no message could hold (a name that is none, a zone without name servers) is logged, not served. */
export interface ZoneSink {
  /** A new zone, or the present one read anew: nothing of the former is kept. The records are read before returning. */
  replace(zone: ZoneSettings, records: Iterable<ZoneRecord>): void;
  /**
   * Served when this returns. A zone's settings with its new serial; owners where something else stands now, and owners
   * where nothing does any more. A zone that was never given is an error of the source, and logged.
   */
  change(zone: ZoneSettings, set: Iterable<ZoneRecord>, removed: Iterable<string>): void;
  /** Its names are refused from now on. */
  remove(zoneName: string): void;
}

export interface ZoneSource {
  /** Calls `replace` for every zone there is before it returns, then whatever changes. Returns how to leave. */
  subscribe(sink: ZoneSink): () => void;
}
