/** Whether what an API key is to be limited to are operations, and such as its account's role may call. Pure. */
import type { Problem } from '@levee/contract/errors.ts';
import type { Role } from '@levee/contract/operation.ts';
import { operations } from '@levee/contract/operations.ts';

const rolesOf: ReadonlyMap<string, readonly Role[]> = new Map(operations.map(({ id, roles }) => [id, roles]));

/** The problems point into the body of the key's creation. */
export function findUnknownOperations(ids: ReadonlySet<string> = new Set()): readonly Problem[] {
  return problemsOf(ids, 'unknown_operation', (id) =>
    rolesOf.has(id) ? undefined : `no operation is called ${id}; the OpenAPI document names them (operationId)`,
  );
}

/** A key that can call none of them would only fail at night. */
export function findClosedOperations(ids: ReadonlySet<string> = new Set(), role: Role): readonly Problem[] {
  return problemsOf(ids, 'not_of_role', (id) => {
    const roles = rolesOf.get(id) ?? [];
    return roles.includes(role) ? undefined : `${id} is for keys of ${roles.join(' or ')}; the key is to be of ${role}`;
  });
}

function problemsOf(
  ids: ReadonlySet<string>,
  code: string,
  judge: (id: string) => string | undefined,
): readonly Problem[] {
  return [...ids].flatMap((id, index) => {
    const said = judge(id);
    return said === undefined ? [] : [{ field: `/operations/${index}`, code, message: `operations.${index}: ${said}` }];
  });
}
