/** Operations on flowrules and attacks: 9 to 12 of the given interface, all of them reading. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { attack } from '../schemas/attack.ts';
import { flowrule } from '../schemas/flowrule.ts';
import { providerRuleListQuery, ruleListQuery, uuidParams } from '../schemas/list.ts';

const own = {
  method: 'GET',
  roles: ['provider', 'user'],
  roleError: 'provider_key_required',
  access: 'read',
  tag: 'DDoS Mitigation',
} as const;

export const attackOperations: readonly Operation[] = [
  {
    ...own,
    id: 'listFlowrules',
    number: 9,
    path: '/flowrule',
    summary: 'List flowrules',
    query: ruleListQuery,
    answer: Type.Array(flowrule),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'readFlowrule',
    number: 10,
    path: '/flowrule/{uuid}',
    summary: 'Read one flowrule',
    params: uuidParams,
    answer: Type.Array(flowrule, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    id: 'listProviderFlowrules',
    number: 11,
    method: 'GET',
    path: '/provider/flowrule',
    tag: 'DDoS Mitigation [Provider]',
    summary: "List the flowrules of all the provider's users",
    roles: ['provider'],
    roleError: 'provider_key_required',
    access: 'read',
    query: providerRuleListQuery,
    answer: Type.Array(flowrule),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'listAttacks',
    number: 12,
    path: '/attacks',
    summary: 'List DDoS attacks',
    query: ruleListQuery,
    answer: Type.Array(attack),
    errors: ['validation_failed'],
  },
];
