/**
 * What sampled packets look like, kind by kind, where nobody but they tell it: of the part of an attack that is one holder's
 * (decision 0153). Owns which kind a sampled packet is of; how shares are made is detection/profile.ts's.
 */

import { type ProfileShares, ProfileWindow } from '../detection/profile.ts';
import { classify, type Vector, vectors } from '../detection/vector.ts';
import { readSample, type SampledPacket } from '../firewall/sampled-packet.ts';
import { formatAddress } from '../net/address.ts';

type Captured = Pick<SampledPacket, 'header' | 'length'>;

/** What is no beginning of an IP packet is left out; `total` is of all of them. */
export function shapesOf(packets: readonly Captured[]): (vector: string) => ProfileShares {
  const windows = new Map<string, ProfileWindow>();
  const windowOf = (vector: string) => windows.get(vector) ?? new ProfileWindow(0);
  for (const captured of packets) {
    const sample = readSample(captured);
    if (sample === undefined) continue;
    const {
      family,
      source,
      upperProtocol = 255,
      sourcePort,
      destinationPort,
      tcpFlags,
      icmpType,
      icmpCode,
      fragment,
    } = sample.packet;
    const number = classify(upperProtocol, sourcePort ?? 0, tcpFlags ?? 0, fragment !== undefined, false);
    const one = <K>(key: K | undefined) => (key === undefined ? [] : [[key, 1] as const]);
    const part = {
      samples: 1,
      protocols: one(sample.packet.upperProtocol),
      sourcePorts: one(sourcePort),
      destinationPorts: one(destinationPort),
      icmp: one(icmpType === undefined ? undefined : icmpType * 256 + (icmpCode ?? 0)),
      tcpFlags: one(tcpFlags),
      lengths: one(captured.length >> 4),
      shortest: captured.length,
      longest: captured.length,
      laterFragments: (fragment?.offsetBytes ?? 0) > 0 ? 1 : 0,
      sources: one(formatAddress({ family, value: source })),
      distinctSources: 1,
      entries: [],
    };
    for (const vector of [vectors[number] as Vector, 'total']) {
      const window = windowOf(vector);
      window.add(part, 0);
      windows.set(vector, window);
    }
  }
  return (vector) => windowOf(vector).shares();
}
