/**
 * What a router that has a flowrule does it to, packet by packet (RFC 8955, 4.2.2; RFC 8956, 3). Written from the documents
 * alone, to hold what claims to know it. Test code only.
 */
import { type Packet, showsTransportHeader } from '../../firewall/packet.ts';
import type { FlagExpression } from '../../flowspec/flag-expression.ts';
import type { Flowrule } from '../../flowspec/flowrule.ts';
import { isInSet, type NumberSet } from '../../flowspec/number-set.ts';
import { prefixContainsAddress } from '../../net/prefix.ts';

export function flowruleMatches({ dst, source, numbers, flags }: Flowrule, packet: Packet): boolean {
  const { family, fragment } = packet;
  if (!prefixContainsAddress(dst, { family, value: packet.destination })) return false;
  if (source !== undefined && !prefixContainsAddress(source, { family, value: packet.source })) return false;
  const shows = showsTransportHeader(packet);
  const has = (set: NumberSet | undefined, ...values: (number | undefined)[]) =>
    set === undefined || values.some((value) => value !== undefined && isInSet(set, value));
  const meets = (expression: FlagExpression | undefined, octet: number | undefined) =>
    expression === undefined ||
    (octet !== undefined && expression.some(({ set, unset }) => (octet & set) === set && (octet & unset) === 0));
  const ofHeader = <T>(value: T | undefined) => (shows ? value : undefined);
  const isLater = (fragment?.offsetBytes ?? 0) > 0;
  const more = fragment?.more ?? false;
  const kinds = (isLater ? 2 : 0) | (!isLater && more ? 4 : 0) | (isLater && !more ? 8 : 0);
  return (
    has(numbers.protocol, packet.upperProtocol) &&
    has(numbers['source-port'], ofHeader(packet.sourcePort)) &&
    has(numbers['destination-port'], ofHeader(packet.destinationPort)) &&
    has(numbers.port, ofHeader(packet.sourcePort), ofHeader(packet.destinationPort)) &&
    has(numbers['icmp-type'], ofHeader(packet.icmpType)) &&
    has(numbers['icmp-code'], ofHeader(packet.icmpCode)) &&
    has(numbers['packet-length'], packet.totalLengthBytes) &&
    meets(flags['tcp-flags'], ofHeader(packet.tcpFlags)) &&
    meets(flags.fragment, kinds)
  );
}
