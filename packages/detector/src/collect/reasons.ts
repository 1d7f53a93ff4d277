/**
 * Owns why a datagram or record that could be read does not count: what an operator reads beside an exporter, as decode/reasons.ts
 * says why one could not be read.
 */
export const collectorReasons = {
  unknown_exporter: 'A datagram from an address that no exporter is configured for; it was not read.',
  other_interface: 'A record of traffic that came in by another interface than those that count.',
  not_protected: 'A record of traffic to an address outside the protected prefixes, as what customers send.',
} as const;

export type CollectorReason = keyof typeof collectorReasons;
