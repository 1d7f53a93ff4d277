/**
 * What a problem says where null was received for a field that need not be given: clients that write all of their fields
 * write it for "none", and are told how to say that. Decides nothing about what is allowed.
 */
import type { Problem } from '@levee/contract/errors.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

const words = 'received null';

/** `schema`: of the body that the problems are about. */
export function withNullHints(schema: object | undefined, problems: readonly Problem[]): readonly Problem[] {
  if (schema === undefined || !problems.some(({ message }) => message.includes(words))) return problems;
  return problems.map((problem) => {
    const isHinted = problem.message.includes(words) && isOptional(schema as Schema, problem.field);
    if (!isHinted) return problem;
    return { ...problem, message: problem.message.replace(words, `${words}; leave the field out instead`) };
  });
}

/** Whether the field at the pointer may be absent from the object that it is in. */
function isOptional(schema: Schema, pointer: string): boolean {
  let at: Schema | undefined = schema;
  let optional = false;
  for (const step of pointer.split('/').slice(1)) {
    at = at?.anyOf?.find(({ properties, items }) => properties !== undefined || items !== undefined) ?? at;
    const named: Schema | undefined = Object.hasOwn(at?.properties ?? {}, step) ? at?.properties?.[step] : undefined;
    optional = named !== undefined && !at?.required?.includes(step);
    at = named ?? at?.items;
  }
  return optional;
}
