/**
 * Makes the answers of one run those of any other: identifiers, times and secrets that a server makes up become
 * fixed ones. What was sent is left as it is. Owns one mapping for a whole run, so that one thing has one name.
 */
import { exampleUuid } from '@levee/contract/openapi-examples.ts';

const uuidForm = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** Members whose value is a secret, shown once. */
const secrets = new Set(['key', 'enrollment_token', 'secret', 'signing_secret']);
/** Members whose value is how long something took. */
const durations = new Set(['latency_ms', 'duration_ms']);

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
  const text = (value: string): string => {
    if (given.has(value)) return value;
    if (!timeForm.test(value)) return value.replace(uuidForm, nameOf);
    const distance = Math.round((Date.parse(value) - now()) / hour) * hour;
    return new Date(recordedAt + distance).toISOString();
  };
  const member = (name: string, value: unknown): unknown => {
    if (secrets.has(name) && typeof value === 'string') return disguise(value);
    if (durations.has(name) && typeof value === 'number') return 12;
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
  const [prefix = ''] = /^(?:lv_[a-z]_|whsec_)?/.exec(secret) ?? [];
  const word = 'Example';
  return prefix + secret.slice(prefix.length).replace(/[^_=]/g, (_, at: number) => word[at % word.length] ?? '');
}
