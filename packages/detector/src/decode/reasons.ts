/**
 * Owns the list of why something of a datagram gave no record: what an operator reads beside an exporter. Nothing is
 * left out silently; a reason that is not in this list cannot be counted.
 */
import type { DecodeCounts } from '../flow-record.ts';

export const reasons = {
  version_unknown: 'The datagram is of no format that is read here: sFlow v5, NetFlow v5, NetFlow v9, IPFIX.',
  datagram_cut: 'The datagram ends before what its header announced; what was whole in it was read.',
  datagram_longer: 'Octets follow after the end that the header announced; they were not read.',
  datagram_empty: 'The header announced nothing, and nothing followed.',
  counter_sample: 'A sample of interface counters: it tells of no packet.',
  sample_unknown: 'A sample of a kind that is not read here, as of a vendor of its own.',
  sample_malformed: 'The lengths inside a sample contradict each other.',
  sample_without_packet: 'A sample without a packet header or addresses of IPv4 or IPv6.',
  header_unknown: 'A sampled header of a link layer that is not read here.',
  header_not_ip: 'A sampled packet that is neither IPv4 nor IPv6, as ARP.',
  header_cut: 'So little of the packet was sampled that its IP header is not whole.',
  header_malformed: 'A sampled IP header whose version or lengths cannot be.',
  set_malformed: 'A set shorter than its own header: the rest of its datagram could not be read.',
  set_unknown: 'A set with a number that the formats reserve.',
  template_malformed:
    'A set of templates with none in it, or one that cannot be: cut, a number below 256, no length, too many fields.',
  template_missing: 'A set of data whose template did not come in time, or for which there was no room to wait.',
  template_evicted: 'A template that had to make room for newer ones.',
  record_cut: 'A set of data that ends in the middle of a record, or has none at all.',
  records_costly:
    'Records with more fields than the datagram has octets, twice over: the rest of their set was not read.',
  value_absurd:
    'A sampling rate of more than 1:16777216; a sample that bears it counts for nothing, told by options it is not used.',
  record_without_address: 'A flow that tells no destination address.',
  record_without_counts: 'A flow that tells neither packets nor octets.',
} as const;

export type Reason = keyof typeof reasons;

export function countDropped(counts: DecodeCounts, reason: Reason): void {
  counts.dropped[reason] = (counts.dropped[reason] ?? 0) + 1;
}
