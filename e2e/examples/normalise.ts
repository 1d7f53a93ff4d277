/**
 * Makes the answers of one run those of any other: identifiers, times and secrets that a server makes up become
 * fixed ones. What was sent is left as it is. Owns one mapping for a whole run, so that one thing has one name.
 */
import { exampleUuid } from '@levee/contract/openapi-examples.ts';

const uuidForm = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const timeForm = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** Identifiers of events: which history, and the place in it. */
const eventForm = /\b[0-9a-f]{8}(?=-\d+\b(?!-))/g;
/** Members whose value is a secret, shown once. */
const secrets = new Set(['key', 'enrollment_token', 'secret', 'signing_secret']);
/** Members whose value is how long something took, or came of the time. */
const measured: Readonly<Record<string, number>> = {
  latency_ms: 12,
  duration_ms: 12,
  decide_ms: 12,
  enforce_ms: 40,
  serial: 1769860800,
};

const requestId = '3f6c2c1e-9d0b-4c57-8a0e-1f6f3b7f5c11';
const recordedAt = Date.parse('2026-01-31T12:00:00.000Z');
const hour = 3_600_000;
/** A list shows that much. */
const entriesMaximum = 2;

export interface Normaliser {
  /** From now on the identifier that the examples use stands for this one. */
  bind(uuid: string): void;
  /** Identifiers and times in what is sent stay as they are. */
  sent(value: unknown): void;
  normalise(value: unknown): unknown;
}

export function createNormaliser(now: () => number): Normaliser {
  const names = new Map<string, string>();
  const given = new Set<string>();

  const nameOf = (uuid: string): string => {
    if (given.has(uuid)) return uuid;
    const known = names.get(uuid);
    if (known !== undefined) return known;
    const name = exampleUuid.slice(0, -4) + (names.size + 0xa000).toString(16);
    names.set(uuid, name);
    return name;
  };
  const timeOf = (time: string): string => {
    const distance = Math.round((Date.parse(time) - now()) / hour) * hour;
    return new Date(recordedAt + distance).toISOString();
  };
  const text = (value: string): string => {
    if (given.has(value)) return value;
    return value
      .replace(uuidForm, nameOf)
      .replace(eventForm, '5f0c3a9e')
      .replace(timeForm, (time) => (given.has(time) ? time : timeOf(time)));
  };
  const member = (name: string, value: unknown): unknown => {
    if (secrets.has(name) && typeof value === 'string') return disguise(value);
    if (name === 'request_id') return requestId;
    if (typeof value === 'number') return measured[name] ?? value;
    return normalise(value);
  };
  const normalise = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.slice(0, entriesMaximum).map(normalise);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, member(name, each)]));
  };
  return {
    bind: (uuid) => void names.set(uuid, exampleUuid),
    sent(value) {
      JSON.stringify(value, (_, each) => {
        if (typeof each === 'string') {
          given.add(each);
          for (const [uuid] of each.matchAll(uuidForm)) given.add(uuid);
        }
        return each;
      });
      given.delete(exampleUuid);
    },
    normalise,
  };
}

/** Of the same form, and recognisably none. */
function disguise(secret: string): string {
  const [, prefix = '', text = '', check = ''] =
    /^(lv_[a-z]_|whsec_)?(.*?)((?:(?<=^lv_.*)_\w+|=)?)$/.exec(secret) ?? [];
  const example = (length: number) => 'Example'.repeat(Math.ceil(length / 7)).slice(0, length);
  const end = check.startsWith('_') ? `_${example(check.length - 1)}` : check;
  return prefix + example(text.length) + end;
}
