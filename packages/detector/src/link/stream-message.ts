/**
 * From a line of the control plane's stream to a message. Owns what is checked of it: the control plane is trusted with
 * meaning, and a line that is none of its own must not reach detection.
 */
import type { DetectorSettings, DetectorStreamMessage } from '@levee/contract/detector.ts';
import { has, isListOf, isNumber, isObject, isText } from '../shape.ts';

export type ParsedMessage =
  /** Undefined: of a type that a later release sends. */
  | { readonly ok: true; readonly message: DetectorStreamMessage | undefined }
  | { readonly ok: false; readonly reason: string };

const isPolicy = (value: unknown): boolean =>
  has(value, {
    uuid: isText,
    subnets: (subnets) => isListOf(subnets, isText),
    rank: isNumber,
    thresholds: isObject,
    hold_s: isNumber,
    baseline_factor: isNumber,
  });
const isSampling = (value: unknown): boolean => value === 'auto' || value === 'prescaled' || isNumber(value);
export const isExporter = (value: unknown): boolean =>
  has(value, { uuid: isText, name: isText, source: isText, sampling: isSampling });
export const isOngoing = (value: unknown): boolean =>
  has(value, {
    id: isText,
    dst: isText,
    vectors: (vectors) => isListOf(vectors, isText),
    started_ms: isNumber,
    detected_ms: isNumber,
  });
const isBaseline = (value: unknown): boolean =>
  has(value, { dst: isText, vector: isText, hour: isNumber, pps: isNumber, bps: isNumber, weight: isNumber });

const shapes: Readonly<Record<DetectorStreamMessage['type'], Readonly<Record<string, (value: unknown) => boolean>>>> = {
  hello: { detector: (value) => has(value, { uuid: isText, name: isText }), heartbeat_s: isNumber },
  baselines: { entries: (value) => isListOf(value, isBaseline) },
  settings: {
    revision: isNumber,
    prefixes: (value) => isListOf(value, isText),
    policies: (value) => isListOf(value, isPolicy),
    exporters: (value) => isListOf(value, isExporter),
    ongoing: (value) => isListOf(value, isOngoing),
  },
  samples_wanted: { request: isText, dst: isText, seconds: isNumber, most: isNumber },
  heartbeat: {},
};

export function parseStreamMessage(line: Buffer): ParsedMessage {
  let value: unknown;
  try {
    value = JSON.parse(line.toString());
  } catch {
    return { ok: false, reason: 'a line is no JSON' };
  }
  const type = isObject(value) ? value.type : undefined;
  if (typeof type !== 'string') return { ok: false, reason: 'a line is no message' };
  if (!Object.hasOwn(shapes, type)) return { ok: true, message: undefined };
  if (!has(value, shapes[type as DetectorStreamMessage['type']])) {
    return { ok: false, reason: `a message of type ${type} is malformed` };
  }
  return { ok: true, message: value as DetectorStreamMessage };
}

/** For settings that were kept in a file. */
export function isSettings(value: unknown): value is DetectorSettings {
  return isObject(value) && value.type === 'settings' && has(value, shapes.settings);
}
