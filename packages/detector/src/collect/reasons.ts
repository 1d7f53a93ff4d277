/**
 * Owns why a datagram or record that could be read does not count: what an operator reads beside an exporter, as decode/reasons.ts
 * says why one could not be read.
 */
export const collectorReasons = {
  unknown_exporter: 'A datagram from an address that no exporter is configured for; it was not read.',
  other_interface: 'A record of traffic that came in by another interface than those that count.',
  not_protected: 'A record of traffic to an address outside the protected prefixes, as what customers send.',
  too_long:
    'A flow that lasted longer than 32 minutes, or one that there was no room for: its rate counts for a part of the time alone.',
  more_than_a_line: 'A record of more traffic than any line carries: 2^40 octets or 2^34 packets a second.',
} as const;

export type CollectorReason = keyof typeof collectorReasons;
