/**
 * What hostile requests are drawn from: values that break careless readers, and every name and example that the contract
 * knows, so that an operation that is added later is drawn too. Test code only.
 */
import type { Operation } from '@levee/contract/operation.ts';
import { operations } from '@levee/contract/operations.ts';
import { filterFields } from '@levee/core/filter/filter.ts';
import { ruleFields } from '@levee/core/firewall/wire.ts';

export const strings = [
  '',
  ' ',
  '\u0000',
  '\u202e',
  '💥',
  '../../etc/passwd',
  "' or 1=1 --",
  '{{7*7}}',
  '%00',
  '\ud800',
  'x'.repeat(5000),
  '203.0.113.7',
  '203.0.113.7/33',
  '::ffff:203.0.113.7',
  '0x7f.1',
  '2001:db8::/129',
  'any',
  'drop',
  '-1',
  '1e309',
  '9'.repeat(400),
  'constructor',
  'toString',
  '[object Object]',
  '2024-13-45T99:99:99Z',
  '+275760-09-13T00:00:00.001Z',
];

export const numbers = [0, -0, -1, 1.5, 65536, 2 ** 31, 2 ** 32, 2 ** 53, 1e308, -1e308, 5e-324];

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** At any depth. */
function namesIn(schema: Schema | undefined): string[] {
  if (schema === undefined) return [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, each]) => [name, ...namesIn(each)]);
  return [...own, ...namesIn(schema.items), ...(schema.anyOf ?? []).flatMap(namesIn)];
}

const namesOf = (part: (operation: Operation) => unknown) => [
  ...new Set(operations.flatMap((operation) => namesIn(part(operation) as Schema | undefined))),
];

export const queryNames = namesOf(({ query }) => query);

export const names = [
  // Judged by core, so that their schemas alone do not know them all.
  ...new Set([...ruleFields, ...filterFields, ...namesOf(({ body }) => body)]),
  'start',
  'end',
  'toString',
  'hasOwnProperty',
  'constructor',
  '',
  'a/b',
  'a~b',
  '\u0000',
];

/** The body that each operation shows as its example. */
export const examples = operations.flatMap(({ example }) =>
  example?.body === undefined ? [] : [example.body as object],
);
