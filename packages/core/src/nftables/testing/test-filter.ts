/** A filter for a test from the fields that matter to it. Never used outside tests. */
import type { Filter } from '../../filter/filter.ts';
import type { FilterKind } from '../../filter/filter-kind.ts';
import { prefixFromTrusted } from '../../net/prefix-text.ts';
import { ruleUuid } from './random-rules.ts';

/** `number` gives uuid and creation order. */
export function testFilter(number: number, dst: string, kind: FilterKind, fields: Partial<Filter> = {}): Filter {
  return {
    uuid: ruleUuid(number),
    sequence: number,
    priority: 1000,
    dst: prefixFromTrusted(dst),
    kind,
    ...fields,
  };
}
