/** Which methods a path has, for `405` and `Allow`: the router tells only that this method has no route there. */
import type { Operation } from '@levee/contract/operation.ts';

export interface PathTemplate {
  readonly form: RegExp;
  readonly method: string;
}

export function pathTemplate(method: string, path: string): PathTemplate {
  const form = path.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+');
  return { method, form: new RegExp(`^${form}$`) };
}

export function templatesOf(base: string, operations: readonly Operation[]): PathTemplate[] {
  return operations.map((operation) => pathTemplate(operation.method, base + operation.path));
}

/** Empty: no such path. */
export function methodsOf(templates: readonly PathTemplate[], path: string): string[] {
  return [...new Set(templates.filter(({ form }) => form.test(path)).map(({ method }) => method))];
}
