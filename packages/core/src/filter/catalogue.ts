/**
 * Gathers the kinds of filters, and finds one by what a request or a row names. Owns the list; what a kind is stands in
 * its own file.
 */
import type { FilterKind } from './filter-kind.ts';
import { dns } from './kinds/dns.ts';
import { dtls } from './kinds/dtls.ts';
import { fivem } from './kinds/fivem.ts';
import { icmpLimit } from './kinds/icmp-limit.ts';
import { minecraftBedrock } from './kinds/minecraft-bedrock.ts';
import { minecraftJava } from './kinds/minecraft-java.ts';
import { minecraftQuery } from './kinds/minecraft-query.ts';
import { mumble } from './kinds/mumble.ts';
import { ntp } from './kinds/ntp.ts';
import { openvpnUdp } from './kinds/openvpn-udp.ts';
import { quic } from './kinds/quic.ts';
import { rtp } from './kinds/rtp.ts';
import { samp } from './kinds/samp.ts';
import { sip } from './kinds/sip.ts';
import { sourceEngine } from './kinds/source-engine.ts';
import { stun } from './kinds/stun.ts';
import { tcpSymmetric } from './kinds/tcp-symmetric.ts';
import { tcpSynProtect } from './kinds/tcp-syn-protect.ts';
import { teamspeak3 } from './kinds/teamspeak3.ts';
import { udpAmplification } from './kinds/udp-amplification.ts';
import { web } from './kinds/web.ts';
import { wireguard } from './kinds/wireguard.ts';

/** In order of their ids. */
export const filterKinds: readonly FilterKind[] = [
  tcpSynProtect,
  tcpSymmetric,
  udpAmplification,
  icmpLimit,
  sourceEngine,
  minecraftJava,
  minecraftBedrock,
  minecraftQuery,
  fivem,
  teamspeak3,
  samp,
  mumble,
  wireguard,
  openvpnUdp,
  dns,
  quic,
  dtls,
  stun,
  ntp,
  sip,
  rtp,
  web,
];

const byId = new Map(filterKinds.map((kind) => [kind.id, kind]));

export function filterKind(id: number): FilterKind | undefined {
  return byId.get(id);
}

export function filterKindNamed(name: string): FilterKind | undefined {
  return filterKinds.find((kind) => kind.name === name);
}
