/**
 * The messages of the bus to octets and back. Owns the version and what is accepted: anyone who may publish may send anything, so
 * that whatever is read here is whole, within bounds, and of the shape that its type says; what is not is refused with a reason, never thrown.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { isExporter, isOngoing } from '../link/stream-message.ts';
import { has, isListOf, isNumber, isText } from '../shape.ts';
import type { BusMessage } from './messages.ts';
import { Malformed } from './octets.ts';
import { readSlotEnd, readSlotPart, writeSlotEnd } from './slot-codec.ts';

/** Of the whole format; a message of another one is counted and passed over. */
export const BUS_VERSION = 1;
/** Octets of what was compressed; settings hold all prefixes of an installation. */
const longestText = 8 << 20;
const longestSettings = 64 << 20;
const compressedFrom = 1_024;

export type Decoded =
  | { readonly ok: true; readonly message: BusMessage }
  | { readonly ok: false; readonly reason: BadMessage };

/** Why something is not a message: few, so that they can be counted by name. */
export type BadMessage = 'version' | 'type' | 'malformed';

/** The position of a type is its number on the bus; the order never changes. */
const types = [
  'slot_part',
  'slot_end',
  'status',
  'samples',
  'settings',
  'hot',
  'samples_wanted',
  'ask',
  'member',
  'attacks',
  'farewell',
] as const satisfies readonly BusMessage['type'][];

type Type = (typeof types)[number];
type TextType = Exclude<Type, 'slot_part' | 'slot_end'>;
type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const isCount = (value: unknown): boolean => typeof value === 'number' && value >= 0 && Number.isFinite(value);
const isName = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.length <= 128;
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const isMissingOr = (is: (value: unknown) => boolean) => (value: unknown) => value === undefined || is(value);
const isTexts =
  (most: number) =>
  (value: unknown): boolean =>
    isListOf(value, isText) && (value as unknown[]).length <= most;
const isUpTo =
  (most: number, each: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.length <= most && value.every(each);

const exporterStatus: Shape = {
  uuid: isMissingOr(isText),
  source: isText,
  last_seen_ms: isCount,
  protocols: isTexts(8),
  datagrams: isCount,
  records: isCount,
  datagrams_per_second: isCount,
  records_per_second: isCount,
  templates: isCount,
  sampling_rate: isMissingOr(isCount),
  longest_flow_s: isMissingOr(isCount),
  dropped: (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).length <= 64 &&
    Object.values(value).every(isCount),
  lost: isCount,
};

const packetSample: Shape = {
  at_ms: isCount,
  scale: isCount,
  exporter: isText,
  input_interface: isMissingOr(isCount),
  length: isCount,
  header: (value) => typeof value === 'string' && value.length <= 172,
};

const shapes: Readonly<Record<TextType, Shape>> = {
  status: {
    collector: isName,
    run: isMissingOr(isName),
    settingsRevision: isCount,
    exporters: isUpTo(1_000, (value) => has(value, exporterStatus)),
    receiveBuffer: (value) => has(value, { bytes: isCount, wanted: isCount }),
    kernelDrops: isCount,
    overflow: (value) =>
      has(value, { unknownDatagrams: isCount, samples: isCount, unspread: isCount, unprofiled: isCount }),
    listening: isMissingOr(isTexts(64)),
    refused: isMissingOr(isTexts(64)),
    unsent: isMissingOr(isCount),
  },
  samples: {
    collector: isName,
    request: isName,
    held: isCount,
    packets: isUpTo(10_000, (value) => has(value, packetSample)),
  },
  settings: {
    settings: (value) =>
      has(value, {
        revision: isNumber,
        prefixes: (prefixes) => isListOf(prefixes, isText),
        exporters: (exporters) => isListOf(exporters, isExporter),
      }),
  },
  hot: { detector: isName, destinations: isTexts(4_096) },
  samples_wanted: { request: isName, dst: isText, sinceMs: isNumber, most: isCount },
  ask: {},
  member: { detector: isName, ready: isFlag, linked: isFlag },
  attacks: { detector: isName, ongoing: isUpTo(4_096, isOngoing), ended: isTexts(4_096) },
  farewell: { name: isName },
};

/** What collectors go by: thresholds and attacks are not their business. */
export function collectorSettings({ revision, prefixes, exporters }: DetectorSettings): DetectorSettings {
  return { type: 'settings', revision, prefixes, exporters, policies: [], ongoing: [] };
}

/** Of a slot's parts the octets are written by `writeSlot` already. */
export function encodeSlotPart(part: Uint8Array): Uint8Array {
  return withHead('slot_part', part);
}

export function encode(message: Exclude<BusMessage, { readonly type: 'slot_part' }>): Uint8Array {
  const { type } = message;
  if (type === 'slot_end') return withHead(type, writeSlotEnd(message));
  const told =
    type === 'settings' ? { settings: collectorSettings(message.settings) } : { ...message, type: undefined };
  const text = Buffer.from(JSON.stringify(told));
  return text.length < compressedFrom
    ? withHead(type, Buffer.concat([Uint8Array.of(0), text]))
    : withHead(type, Buffer.concat([Uint8Array.of(1), deflateRawSync(text, { level: 1 })]));
}

export function decode(octets: Uint8Array): Decoded {
  const [version, number = types.length] = octets;
  if (version !== BUS_VERSION) return { ok: false, reason: 'version' };
  const type = types[number];
  if (type === undefined) return { ok: false, reason: 'type' };
  const body = octets.subarray(2);
  try {
    if (type === 'slot_part') return { ok: true, message: { type, ...readSlotPart(body) } };
    if (type === 'slot_end') return { ok: true, message: { type, ...readSlotEnd(body) } };
    return { ok: true, message: readText(type, body) };
  } catch {
    return { ok: false, reason: 'malformed' };
  }
}

/** Throws whatever says that it is none. */
function readText(type: TextType, body: Uint8Array): BusMessage {
  const packed = body.subarray(1);
  const isPacked = body[0] === 1;
  const text = isPacked
    ? inflateRawSync(packed, { maxOutputLength: type === 'settings' ? longestSettings : longestText })
    : Buffer.from(packed);
  const value: unknown = JSON.parse(text.toString());
  if (!has(value, shapes[type])) throw new Malformed(`no message of type ${type}`);
  if (type !== 'settings') return { ...(value as object), type } as BusMessage;
  const { settings } = value as { settings: DetectorSettings };
  return { type, settings: collectorSettings(settings) };
}

function withHead(type: Type, body: Uint8Array): Uint8Array {
  const octets = new Uint8Array(body.length + 2);
  octets[0] = BUS_VERSION;
  octets[1] = types.indexOf(type);
  octets.set(body, 2);
  return octets;
}
