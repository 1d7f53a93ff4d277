/**
 * Derives the state of a PTR record from what was asked for, what the DNS server has taken, and how that server does.
 * Owns the sentences that say why a record is not served; they name no secret and no address of a server, because
 * customers read them.
 */

export interface RecordFacts {
  /** The address, canonical. */
  readonly ips: string;
  readonly changePosition: number;
  /** The change that the server has. */
  readonly appliedPosition: number | null;
  /** Why the server did not take this record. */
  readonly failure: string | null;
  /** It was sent together with records that the server refused, and has yet to be tried apart from them. */
  readonly held: boolean;
  readonly deleted: boolean;
}

export interface ZoneFacts {
  readonly zone: string;
  readonly driver: 'embedded' | 'rfc2136' | 'powerdns';
  /** Whether its server has ever been tried. */
  readonly tried: boolean;
  readonly trouble: 'away' | 'refused' | null;
  /** RFC 3339. */
  readonly troubleSince: string | null;
  readonly lastError: string | null;
}

export interface RecordState {
  readonly state: 'pending' | 'active' | 'failed';
  readonly reason?: string;
}

/** `zone`: the narrowest that covers the address. For a deleted record `active` means: gone from the server. */
export function recordState(record: RecordFacts, zone: ZoneFacts | undefined): RecordState {
  if (record.appliedPosition === record.changePosition) return { state: 'active' };
  if (zone === undefined) {
    const reason = record.deleted
      ? `No reverse zone covers ${record.ips}: there is no server to take the record from.`
      : `No reverse zone covers ${record.ips}: the operator adds one with POST /v1/operator/rdns-zone.`;
    return { state: 'pending', reason };
  }
  if (record.failure !== null) return { state: 'failed', reason: record.failure };
  const { zone: name, trouble, lastError } = zone;
  const said = lastError === null ? '' : `: ${lastError}`;
  if (trouble === 'refused') return { state: 'failed', reason: `The DNS server of ${name} refuses changes${said}.` };
  if (trouble === 'away') {
    return { state: 'pending', reason: `The DNS server of ${name} is away since ${zone.troubleSince}${said}.` };
  }
  if (!zone.tried) {
    const hint = zone.driver === 'embedded' ? ' (is the embedded DNS server switched off?)' : '';
    return { state: 'pending', reason: `The DNS server of ${name} has not been tried yet${hint}.` };
  }
  if (record.held) {
    return { state: 'pending', reason: `Not tried yet: the DNS server of ${name} refused other records of the zone.` };
  }
  return { state: 'pending', reason: `The change is on its way to the DNS server of ${name}.` };
}
