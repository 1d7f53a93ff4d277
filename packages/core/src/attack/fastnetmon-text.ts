/**
 * Owns the text that FastNetMon passes to notify scripts: lines of "Name: value", then sampled packets, one a line. What
 * is not of that form is passed over. Rates are "N packets per second" and "N mbps" (10^6 bits).
 */
import { mostPackets, type SampledPacket } from './packet-tally.ts';

export interface TextDetails {
  readonly type: string | undefined;
  readonly protocol: string | undefined;
  readonly direction: string | undefined;
  readonly peakPacketsPerSecond: number | undefined;
  readonly bitsPerSecond: number | undefined;
  readonly packets: readonly SampledPacket[];
}

/** Longer lines are none of FastNetMon's. */
const longestLine = 512;

export function parseTextDetails(text: string): TextDetails {
  const named = new Map<string, string>();
  const packets: SampledPacket[] = [];
  for (const line of text.split('\n')) {
    if (line.length > longestLine) continue;
    const packet = packets.length < mostPackets ? packetOf(line) : undefined;
    if (packet !== undefined) packets.push(packet);
    const colon = line.indexOf(': ');
    const name = colon < 0 ? '' : line.slice(0, colon).trim().toLowerCase();
    // The first one stands: sampled payloads come behind.
    if (wanted.has(name) && !named.has(name)) named.set(name, line.slice(colon + 2).trim());
  }
  const mbps = rateOf(named.get('total incoming traffic'), /^([0-9]{1,9}) mbps$/);
  const rates = ['peak attack power', 'initial attack power', 'total incoming pps'].map((name) =>
    rateOf(named.get(name), /^([0-9]{1,12}) packets per second$/),
  );
  const known = rates.filter((rate) => rate !== undefined);
  return {
    type: named.get('attack type'),
    protocol: named.get('attack protocol'),
    direction: named.get('attack direction'),
    peakPacketsPerSecond: known.length === 0 ? undefined : Math.max(...known),
    bitsPerSecond: mbps === undefined ? undefined : mbps * 1_000_000,
    packets,
  };
}

const wanted = new Set([
  'attack type',
  'attack protocol',
  'attack direction',
  'peak attack power',
  'initial attack power',
  'total incoming traffic',
  'total incoming pps',
]);

function rateOf(text: string | undefined, form: RegExp): number | undefined {
  const found = form.exec(text ?? '');
  return found === null ? undefined : Number(found[1]);
}

/** `date time source:port > destination:port protocol: …`; an IPv6 address holds colons, the port follows the last one. */
function packetOf(line: string): SampledPacket | undefined {
  const found =
    /^[0-9-]{10} [0-9:.]{8,16} ([0-9a-fA-F.:]{3,50}):([0-9]{1,5}) > ([0-9a-fA-F.:]{3,50}):([0-9]{1,5}) protocol: /.exec(
      line,
    );
  if (found === null) return undefined;
  const [, source = '', sourcePort = '', destination = '', destinationPort = ''] = found;
  const packets = /\spackets: ([0-9]{1,9})\s/.exec(line);
  const port = (digits: string) => (Number(digits) <= 65535 ? Number(digits) : 0);
  return {
    source,
    destination,
    sourcePort: port(sourcePort),
    destinationPort: port(destinationPort),
    packets: packets === null ? 1 : Math.max(1, Number(packets[1])),
  };
}
