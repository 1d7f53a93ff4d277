/** The numbers of the DNS that are known by name here, to the server and to updates of other servers (IANA "Domain Name System Parameters"). Nothing else. */

export const opcodes = { query: 0, notify: 4, update: 5 } as const;

/** Above 15 they need EDNS: the upper bits stand in OPT (RFC 6891, 6.1.3). */
export const rcodes = {
  noError: 0,
  formErr: 1,
  servFail: 2,
  nxDomain: 3,
  notImp: 4,
  refused: 5,
  notAuth: 9,
  notZone: 10,
  badVers: 16,
} as const;

/** An error inside TSIG (RFC 8945, 3), not in the header. */
export const tsigBadKey = 17;

export const types = {
  ns: 2,
  cname: 5,
  soa: 6,
  ptr: 12,
  opt: 41,
  ds: 43,
  tsig: 250,
  ixfr: 251,
  axfr: 252,
  mailb: 253,
  maila: 254,
  any: 255,
} as const;

export const classes = { in: 1, any: 255 } as const;

/** Bits of the second 16-bit word of the header. */
export const flags = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursionDesired: 0x0100 } as const;

export const headerBytes = 12;

/** Without EDNS (RFC 1035, 4.2.1). */
export const plainUdpBytes = 512;
/** With it, at most: no fragments on any path that carries IPv6 (DNS flag day 2020). */
export const ednsUdpBytes = 1232;
export const tcpBytes = 65_535;
