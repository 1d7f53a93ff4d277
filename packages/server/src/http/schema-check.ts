/**
 * Compiles contract's schemas (Ajv) and turns what Ajv finds into problems with a sentence: field, what was received,
 * what is allowed. Owns the wording for schema faults; knows no operation.
 */
import type { Problem } from '@levee/contract/errors.ts';
import { showReceived } from '@levee/core/problem.ts';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormatsModule from 'ajv-formats';
import { boundValue, type CutMembers } from './bounded-value.ts';

const addFormats = addFormatsModule.default;
const options = { allErrors: true, verbose: true, strict: true, strictSchema: false, ownProperties: true } as const;

/** Bodies: a number in quotes is not a number. */
const bodies = new Ajv(options);
/** Queries are text: `limit=5` is a number. */
const queries = new Ajv({ ...options, coerceTypes: true });
for (const ajv of [bodies, queries]) addFormats(ajv, ['date-time', 'uuid']);

export type Check = (value: unknown) => readonly Problem[];

export function compileBodyCheck(schema: object): Check {
  return checkOf(schema, bodies.compile(withoutId(schema)));
}

/** Changes the given object: numbers and booleans take the place of their texts. */
export function compileQueryCheck(schema: object): Check {
  // A query is short: the request's head is. It is checked as it is, because the check changes it.
  const validate = queries.compile(withoutId(schema));
  return (value) => (validate(value) ? none : problemsOf(validate.errors ?? [], value));
}

/** Whether `value` is what the schema says; for tests of answers. Undefined when it is. */
export function compileAnswerCheck(schema: object): (value: unknown) => string | undefined {
  const validate = bodies.compile(withoutId(schema));
  return (value) => (validate(value) ? undefined : bodies.errorsText(validate.errors));
}

/** The names are for the OpenAPI document; two instances of a name would clash in Ajv. */
function withoutId(schema: object): object {
  return JSON.parse(JSON.stringify(schema), (key, value) => (key === '$id' ? undefined : value)) as object;
}

const none: readonly Problem[] = [];

function checkOf(schema: object, validate: ValidateFunction): Check {
  return (value) => {
    const cut: CutMembers[] = [];
    if (validate(boundValue(schema, value, cut))) return none;
    const more = cut.map(({ at, count, known }) =>
      made(at, 'unknown_field', `has ${count} more fields that are not known; known are ${known.join(', ') || 'none'}`),
    );
    return [...problemsOf(validate.errors ?? [], value), ...more];
  };
}

/** `root` is what was received: the check may have seen a part of it. */
function problemsOf(found: readonly ErrorObject[], root: unknown): Problem[] {
  const problems = new Map<string, Problem>();
  // Alternatives that say in words what they are together: none of them alone tells what is allowed.
  const together = found.filter((error) => error.keyword === 'anyOf' && error.parentSchema?.['x-in-words']);
  const isWithin = (error: ErrorObject) => together.some(({ instancePath }) => instancePath === error.instancePath);
  // Of an alternative with null, the branch that was meant says more than "must be null" or "no alternative".
  const meant = found.filter((error) =>
    isWithin(error)
      ? together.includes(error)
      : error.keyword !== 'anyOf' && !(error.keyword === 'type' && error.params.type === 'null' && found.length > 1),
  );
  for (const error of meant) {
    const problem = problemOf(error, root);
    const key = `${problem.field} ${problem.code}`;
    if (!problems.has(key)) problems.set(key, problem);
  }
  return [...problems.values()];
}

const escapePointer = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function problemOf(error: ErrorObject, root: unknown): Problem {
  const at = (name: string) => `${error.instancePath}/${escapePointer(name)}`;
  switch (error.keyword) {
    case 'required':
      return made(at(error.params.missingProperty), 'required', 'is required');
    case 'additionalProperties':
      return made(
        at(error.params.additionalProperty),
        'unknown_field',
        `is not a known field; known are ${Object.keys(error.parentSchema?.properties ?? {}).join(', ') || 'none'}`,
      );
    default:
      return made(
        error.instancePath,
        codes[error.keyword] ?? 'invalid',
        `${allowed(error)}, received ${received(error, root)}`,
      );
  }
}

/** A value that is wrong is shown, unless its field is a secret. */
function received(error: ErrorObject, root: unknown): string {
  const value = valueAt(root, error.instancePath);
  if (/\/(?:password|secret|api_key)$/.test(error.instancePath)) {
    return typeof value === 'string' ? `one of ${value.length} characters` : 'another type';
  }
  return showReceived(value);
}

function valueAt(root: unknown, pointer: string): unknown {
  let value = root;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

const codes: Record<string, string> = {
  type: 'wrong_type',
  enum: 'not_allowed',
  const: 'not_allowed',
  anyOf: 'not_allowed',
  minimum: 'out_of_bounds',
  maximum: 'out_of_bounds',
  minLength: 'too_short',
  maxLength: 'too_long',
  minItems: 'too_few',
  maxItems: 'too_many',
  minProperties: 'too_few',
  pattern: 'malformed',
  format: 'malformed',
};

function allowed(error: ErrorObject): string {
  const { params, parentSchema } = error;
  switch (error.keyword) {
    case 'type':
      return `must be ${article(String(params.type))}`;
    case 'enum':
      return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
    case 'minimum':
    case 'maximum':
      return `must be from ${parentSchema?.minimum ?? 'any'} to ${parentSchema?.maximum ?? 'any'}`;
    case 'minLength':
      return `must have at least ${params.limit} characters`;
    case 'maxLength':
      return `must have at most ${params.limit} characters`;
    case 'minItems':
      return `must have at least ${params.limit} ${params.limit === 1 ? 'entry' : 'entries'}`;
    case 'maxItems':
      return `must have at most ${params.limit} entries`;
    case 'minProperties':
      return 'must name at least one field';
    case 'format':
      return formats[String(params.format)] ?? `must be a ${params.format}`;
    case 'anyOf':
      return `must be ${parentSchema?.['x-in-words']}`;
    case 'pattern':
      return `must be ${parentSchema?.['x-in-words'] ?? `of the form ${params.pattern}`}`;
    default:
      return error.message ?? 'is not allowed';
  }
}

const formats: Record<string, string> = {
  'date-time': 'must be a time in RFC 3339 form, such as 2030-01-31T12:00:00Z',
  uuid: 'must be a uuid',
};

const article = (type: string) =>
  ({ object: 'an object', array: 'an array', integer: 'an integer', null: 'null' })[type] ?? `a ${type}`;

function made(field: string, code: string, sentence: string): Problem {
  const name = field.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  return { field, code, message: name === '' ? `The body ${sentence}.` : `${name.slice(0, 80)}: ${sentence}` };
}
