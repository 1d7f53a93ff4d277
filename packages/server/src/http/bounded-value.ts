/**
 * Bounds what a schema check can cost, before it begins: lists, texts and unknown members that go beyond what the
 * schema allows are cut to just beyond it, so that the check still finds each fault once and never a hundred thousand
 * times. Owns the cutting; what a value means is the check's. Never changes the value that it was given.
 */

/** Unknown members of one object that are left for the check to name. */
const unknownKept = 20;
/** Longer than every `maxLength` of a body that is checked by its schema. */
const longestText = 4096;

interface Schema {
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly anyOf?: readonly Schema[];
}

/** Where an object has unknown members beyond those that are kept: its JSON pointer, how many more, which are known. */
export interface CutMembers {
  readonly at: string;
  readonly count: number;
  readonly known: readonly string[];
}

export function boundValue(schema: object, value: unknown, cut: CutMembers[], at = ''): unknown {
  if (typeof value === 'string') return value.length > longestText ? value.slice(0, longestText) : value;
  if (typeof value !== 'object' || value === null) return value;
  const { maxItems = Number.POSITIVE_INFINITY, items, properties, additionalProperties } = meant(schema, value);
  if (Array.isArray(value)) {
    const list: unknown[] = value.length > maxItems ? value.slice(0, maxItems + 1) : value;
    // A list where none belongs is one fault, whatever it holds.
    return items === undefined ? [] : list.map((item, index) => boundValue(items, item, cut, `${at}/${index}`));
  }
  if (properties === undefined) return value;
  const bounded: Record<string, unknown> = {};
  let unknown = 0;
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (Object.hasOwn(properties, name))
      bounded[name] = boundValue(properties[name] ?? {}, member, cut, `${at}/${name}`);
    else if (additionalProperties === false && ++unknown <= unknownKept) bounded[name] = member;
  }
  if (unknown > unknownKept) cut.push({ at, count: unknown - unknownKept, known: Object.keys(properties) });
  return bounded;
}

/** Of alternatives (a list or null), the one that is for such a value. */
function meant(schema: Schema, value: object): Schema {
  if (schema.anyOf === undefined) return schema;
  const fits = (each: Schema) => (Array.isArray(value) ? each.items : each.properties) !== undefined;
  return schema.anyOf.find(fits) ?? {};
}
