/** Operations on filters: 5 to 8 of the given interface. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { filter, filterCreate } from '../schemas/filter.ts';
import { providerRuleListQuery, ruleListQuery, uuidParams } from '../schemas/list.ts';

const own = { roles: ['provider', 'user'], roleError: 'provider_key_required', tag: 'DDoS Mitigation' } as const;

export const filterOperations: readonly Operation[] = [
  {
    ...own,
    id: 'createFilter',
    number: 5,
    method: 'POST',
    path: '/filter',
    summary: 'Create a filter',
    access: 'write',
    body: filterCreate,
    answer: filter,
    errors: ['validation_failed', 'ip_not_allowed'],
    waits: true,
    example: { body: { dst: '203.0.113.7', filter: 10, ratelimit: 500 } },
  },
  {
    ...own,
    id: 'listFilters',
    number: 6,
    method: 'GET',
    path: '/filter',
    summary: "List the caller's filters",
    access: 'read',
    query: ruleListQuery,
    answer: Type.Array(filter),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'deleteFilter',
    number: 7,
    method: 'DELETE',
    path: '/filter/{uuid}',
    summary: 'Delete a filter',
    access: 'write',
    params: uuidParams,
    answer: markedForDeletion,
    errors: ['not_found'],
    waits: true,
  },
  {
    id: 'listProviderFilters',
    number: 8,
    method: 'GET',
    path: '/provider/filter',
    tag: 'DDoS Mitigation [Provider]',
    summary: "List the filters of all the provider's users",
    roles: ['provider'],
    roleError: 'provider_key_required',
    access: 'read',
    query: providerRuleListQuery,
    answer: Type.Array(filter),
    errors: ['validation_failed'],
  },
];
