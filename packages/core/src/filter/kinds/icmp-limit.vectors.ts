/** Packets that filter kind 4, ICMP limit, is held to. Data only: types of the IANA registries, quotes of RFC 792 and 4443. */
import type { Family } from '../../net/prefix.ts';
import type { FilterVector, VectorStep } from '../filter-vector.ts';

const message = (type: number, code: number, expect: 'pass' | 'discard', payload = ''): VectorStep => {
  return { from: 'client', transport: 'icmp', icmp: { type, code }, payload, expect };
};

/** The IP header of a packet from `source`, and the first 8 octets of its TCP segment. */
const quoted: Record<Family, (source: string) => string> = {
  4: (source) => `4500 0034 1c46 4000 3f06 0000 ${source} {client} 01bb 9c40 00000001`,
  6: (source) => `6000 0000 0020 06 3f ${source} {client} 01bb 9c40 00000001`,
};
const stranger: Record<Family, string> = { 4: 'c0000201', 6: `20010db8${'00'.repeat(11)}01` };

const each = (family: Family, says: string, ...steps: VectorStep[]): FilterVector => ({ says, family, steps });

export const icmpLimitVectors: readonly FilterVector[] = [
  each(4, 'an echo request and an echo reply (RFC 792)', message(8, 0, 'pass', '00'.repeat(56)), message(0, 0, 'pass')),
  each(4, 'too big a packet: fragmentation needed', message(3, 4, 'pass', quoted[4]('{server}'))),
  each(
    4,
    'time exceeded, parameter problem',
    message(11, 0, 'pass', quoted[4]('{server}')),
    message(12, 0, 'pass', quoted[4]('{server}')),
  ),
  each(
    4,
    'an error about a packet that the destination has not sent',
    message(3, 3, 'discard', quoted[4](stranger[4])),
  ),
  each(
    4,
    'an error that quotes nothing, and one cut off in the source',
    message(3, 3, 'discard'),
    message(3, 3, 'discard', '4500 0034 1c46 4000 3f06 0000 cb0071'),
  ),
  each(4, 'an error that quotes IPv6', message(3, 3, 'discard', quoted[4]('{server}').replace('4500', '6000'))),
  each(
    4,
    'source quench, redirect, router advertisement',
    message(4, 0, 'discard', quoted[4]('{server}')),
    message(5, 1, 'discard', quoted[4]('{server}')),
    message(9, 0, 'discard'),
  ),
  each(
    4,
    'timestamp and address mask requests, extended echo (RFC 8335)',
    message(13, 0, 'discard'),
    message(17, 0, 'discard'),
    message(42, 0, 'discard'),
  ),
  each(4, 'an echo request with code 9, as scanners send', message(8, 9, 'discard')),
  each(4, "IPv6's echo request in IPv4", message(128, 0, 'discard')),
  each(
    6,
    'an echo request and an echo reply (RFC 4443)',
    message(128, 0, 'pass', '00'.repeat(56)),
    message(129, 0, 'pass'),
  ),
  each(6, 'packet too big', message(2, 0, 'pass', quoted[6]('{server}'))),
  each(
    6,
    'unreachable, time exceeded, parameter problem (RFC 4890, 4.3)',
    ...[1, 3, 4].map((type) => message(type, 0, 'pass', quoted[6]('{server}'))),
  ),
  each(
    6,
    'an error about a packet that the destination has not sent',
    message(1, 4, 'discard', quoted[6](stranger[6])),
  ),
  each(
    6,
    'an error cut off in the last octet of the source',
    message(
      2,
      0,
      'discard',
      quoted[6]('{server}')
        .replace(/ \{client\}.*/, '')
        .replace('{server}', '20010db800000000000000000000'),
    ),
  ),
  each(
    6,
    'neighbour discovery, which is for one link alone',
    ...[133, 134, 135, 136, 137].map((type) => message(type, 0, 'discard')),
  ),
  each(
    6,
    'multicast listeners, node information',
    ...[130, 131, 132, 139, 143].map((type) => message(type, 0, 'discard')),
  ),
  each(6, "IPv4's echo request in IPv6", message(8, 0, 'discard')),
];
