/** Operations on measures against attacks: what the operator takes back, keeps, and announces by hand. */
import Type from 'typebox';
import type { Operation } from '../operation.ts';
import { markedForDeletion } from '../schemas/deletion.ts';
import { firewallRule } from '../schemas/firewall-rule.ts';
import { flowrule, flowruleAnnounce, providerFlowruleListQuery } from '../schemas/flowrule.ts';
import { uuidParams } from '../schemas/list.ts';

const operator = { tag: 'operator', roles: ['operator'], roleError: 'operator_key_required' } as const;
const write = { ...operator, access: 'write', params: uuidParams } as const;

export const mitigationOperations: readonly Operation[] = [
  {
    ...operator,
    id: 'listAllFlowrules',
    method: 'GET',
    path: '/operator/flowrule',
    access: 'read',
    summary: 'List the flowrules of all providers',
    description: 'In order of creation.',
    query: providerFlowruleListQuery,
    answer: Type.Array(flowrule),
    errors: ['validation_failed'],
  },
  {
    ...write,
    id: 'withdrawFlowrule',
    method: 'DELETE',
    path: '/operator/flowrule/{uuid}',
    summary: 'Withdraw a flowrule',
    description:
      'It is withdrawn from the peers and goes then. One that came of an attack is not made again for that attack.',
    answer: markedForDeletion,
    errors: ['not_found'],
  },
  {
    ...write,
    id: 'keepFlowrule',
    method: 'POST',
    path: '/operator/flowrule/{uuid}/keep',
    summary: 'Keep a flowrule beyond its attack',
    description:
      "It is the operator's from then on: it has no expiry, does not follow its attack, and stays until it is withdrawn. While " +
      'it was not announced it stays so.',
    answer: flowrule,
    errors: ['not_found', 'conflict'],
  },
  {
    ...write,
    id: 'announceFlowrule',
    method: 'POST',
    path: '/operator/flowrule/{uuid}/announce',
    summary: 'Announce a flowrule that is only proposed',
    description:
      'Whatever its policy says, until it expires. Where it would hit traffic that a rule of a customer accepts, ' +
      '`override_accept` has to say that it may (409 otherwise); such rules do not hold it later either. One that is not held ' +
      'is answered as it is. Beyond the budget of routes nothing is announced (409).',
    body: flowruleAnnounce,
    bodyOptional: true,
    answer: flowrule,
    errors: ['validation_failed', 'not_found', 'conflict'],
    example: { body: { override_accept: true } },
  },
  {
    ...write,
    id: 'keepMeasure',
    method: 'POST',
    path: '/operator/rule/{uuid}/keep',
    summary: 'Keep a rule that is a measure against an attack',
    description:
      "It is the operator's from then on: it has no expiry, does not follow its attack, and stays until it is deleted. It " +
      'still comes after all other rules. A rule that somebody created is no measure (409).',
    answer: firewallRule,
    errors: ['not_found', 'conflict'],
  },
];
