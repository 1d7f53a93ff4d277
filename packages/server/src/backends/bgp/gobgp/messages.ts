/**
 * The messages to and from GoBGP that are used here, by the field numbers of its published interface (versions 3 and 4).
 * Routes travel as the octets of BGP itself, whose fields are the same in both; what differs stands in `apis`.
 */

import type { RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import {
  afiSafiOf,
  type BgpRoute,
  type LargeCommunity,
  type RouteFamily,
  routeContent,
  routeKey,
} from '@levee/core/flowspec/bgp-route.ts';
import { formatAddress } from '@levee/core/net/address.ts';
import type { SpeakerPeer } from '../port.ts';
import { type DecodedMessage, decodeMessage, encodeMessage } from './protobuf.ts';

export interface GobgpApi {
  readonly version: 'v3' | 'v4';
  readonly service: string;
  /** The number of the table of all routes. */
  readonly globalTable: number;
}

export const apis: readonly GobgpApi[] = [
  { version: 'v3', service: 'apipb.GobgpApi', globalTable: 0 },
  { version: 'v4', service: 'api.GoBgpService', globalTable: 1 },
];

const established = 6;

const pathFields = { attributesInWords: 2, isWithdraw: 5, family: 9, neighborIp: 15, nlri: 20, attributes: 21 };

function familyMessage(family: RouteFamily): Uint8Array {
  const { afi, safi } = afiSafiOf(family);
  return encodeMessage({ 1: afi, 2: safi });
}

/** AddPathStreamRequest. */
export function announcement(api: GobgpApi, routes: readonly BgpRoute[]): Uint8Array {
  const paths = routes.map(({ family, nlri, attributes }) =>
    encodeMessage({
      [pathFields.family]: familyMessage(family),
      [pathFields.nlri]: nlri,
      [pathFields.attributes]: attributes,
    }),
  );
  return encodeMessage({ 1: api.globalTable, 3: paths });
}

/** AddPathStreamRequest as well: each path says that it goes. Never a family alone, which would take all of it. */
export function withdrawal(api: GobgpApi, keys: readonly RouteKey[]): Uint8Array {
  const paths = keys.map((key) => {
    const { family, nlri } = partsOfKey(key);
    return encodeMessage({
      [pathFields.isWithdraw]: true,
      [pathFields.family]: familyMessage(family),
      [pathFields.nlri]: nlri,
    });
  });
  return encodeMessage({ 1: api.globalTable, 3: paths });
}

/** As a unicast family is asked for it: `203.0.113.7/32`. */
export function prefixOfKey(key: RouteKey): string {
  const { family, nlri } = partsOfKey(key);
  const [length = 0, ...address] = nlri;
  const [bits, version] = family === 'unicast4' ? ([32, 4] as const) : ([128, 6] as const);
  const octets = Buffer.alloc(bits / 8);
  octets.set(address);
  return `${formatAddress({ family: version, value: BigInt(`0x${octets.toString('hex')}`) })}/${length}`;
}

function partsOfKey(key: RouteKey): { family: RouteFamily; nlri: Uint8Array } {
  const at = key.indexOf(' ');
  const nlri = Buffer.from(key.slice(at + 1), 'hex');
  if (nlri.length === 0) throw new Error(`a route without octets: ${key}`);
  return { family: key.slice(0, at) as RouteFamily, nlri };
}

/** ListPathRequest: the octets of what is in the global table; `prefixes`: of these alone, as FlowSpec cannot be asked. */
export function listing(api: GobgpApi, family: RouteFamily, prefixes: readonly string[] = []): Uint8Array {
  const asked = prefixes.map((prefix) => encodeMessage({ 1: prefix }));
  return encodeMessage({ 1: api.globalTable, 3: familyMessage(family), 4: asked, 7: true, 8: true, 9: true });
}

export interface ListedPath {
  readonly key: RouteKey;
  readonly content: string;
  /** A peer told of it: nothing was announced here. */
  readonly isFromPeer: boolean;
}

/** What was announced here has the words of a missing address. */
const isAddress = /^[0-9a-f]*[.:]/;

/** ListPathResponse. */
export function listedPaths(family: RouteFamily, octets: Uint8Array): ListedPath[] {
  const destination = decodeMessage(octets).message(1);
  return (destination?.all(2) ?? []).flatMap((path) => {
    const read = decodeMessage(path);
    const nlri = read.octets(pathFields.nlri);
    if (nlri === undefined) return [];
    const isFromPeer = isAddress.test(read.text(pathFields.neighborIp));
    const content = routeContent(family, read.all(pathFields.attributes));
    return [{ key: routeKey(family, nlri), content, isFromPeer }];
  });
}

/** WatchEventRequest: what becomes of the sessions with peers, and of the best routes. */
export function watchEverything(): Uint8Array {
  // A filter without a field is the one for best routes.
  return encodeMessage({ 1: new Uint8Array(), 2: encodeMessage({ 1: [new Uint8Array()] }) });
}

/** A route came, became another, or went. */
export interface WatchedChange {
  readonly family: RouteFamily;
  /** Of what came, or of what went: announced here, with our mark. */
  readonly isOurs: boolean;
}

/** WatchEventResponse. FlowSpec alone; events have no octets of BGP, so that which routes they are is not told. */
export function watchedChanges(octets: Uint8Array, mark: LargeCommunity): WatchedChange[] {
  return (decodeMessage(octets).message(3)?.all(2) ?? []).flatMap((path) => {
    const read = decodeMessage(path);
    const named = read.message(pathFields.family);
    const family = flowFamilies.find((each) => {
      const { afi, safi } = afiSafiOf(each);
      return named?.number(1) === afi && named.number(2) === safi;
    });
    if (family === undefined) return [];
    const isFromPeer = isAddress.test(read.text(pathFields.neighborIp));
    return [{ family, isOurs: !isFromPeer && bearsMarkInWords(read, mark) }];
  });
}

const flowFamilies = ['flow4', 'flow6'] as const satisfies readonly RouteFamily[];
const largeCommunities = '/apipb.LargeCommunitiesAttribute';

/** Of version 3: in version 4 they have another form, and no route is known as ours. */
function bearsMarkInWords(path: DecodedMessage, { administrator, first, second }: LargeCommunity): boolean {
  return path.all(pathFields.attributesInWords).some((each) => {
    const attribute = decodeMessage(each);
    if (!attribute.text(1).endsWith(largeCommunities)) return false;
    const communities = attribute.message(2)?.all(1) ?? [];
    return communities.some((community) => {
      const read = decodeMessage(community);
      return read.number(1) === administrator && read.number(2) === first && read.number(3) === second;
    });
  });
}

/** WatchEventResponse. Undefined: of something else. */
export function watchedPeer(octets: Uint8Array): SpeakerPeer | undefined {
  const peer = decodeMessage(octets).message(2)?.message(2);
  return peer && peerOf(peer);
}

/** ListPeerResponse. */
export function listedPeer(octets: Uint8Array): SpeakerPeer | undefined {
  const peer = decodeMessage(octets).message(1);
  return peer && peerOf(peer);
}

function peerOf(peer: DecodedMessage): SpeakerPeer | undefined {
  const [conf, state] = [peer.message(2), peer.message(5)];
  const address = conf?.text(4) || state?.text(5) || '';
  // The event that ends the first ones has a peer without an address.
  if (!isAddress.test(address)) return undefined;
  const asn = state?.number(12) || conf?.number(5) || undefined;
  return { address, asn, established: state?.number(13) === established };
}

/** GetBgpResponse: 0 while gobgpd has no configuration in force. */
export function asnOf(octets: Uint8Array): number {
  return decodeMessage(octets).message(1)?.number(1) ?? 0;
}
