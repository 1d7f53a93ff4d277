/** Owns the question whether a value that came from elsewhere has the members that it should, by name and kind. Pure. */

export type Members = Readonly<Record<string, unknown>>;

export const isText = (value: unknown): boolean => typeof value === 'string';
export const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const isListOf = (value: unknown, each: (value: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(each);
export const has = (value: unknown, shape: Readonly<Record<string, (value: unknown) => boolean>>): boolean =>
  isObject(value) && Object.entries(shape).every(([name, is]) => is(value[name]));
