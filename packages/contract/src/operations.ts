/** Every operation of the interface, once. An operation that no server registers answers 404 there. */
import type { Operation } from './operation.ts';
import { attackOperations } from './operations/attack.ts';
import { filterOperations } from './operations/filter.ts';
import { firewallOperations } from './operations/firewall.ts';
import { networkOperations } from './operations/network.ts';
import { operatorOperations } from './operations/operator.ts';
import { serviceOperations } from './operations/service.ts';
import { userOperations } from './operations/user.ts';

export const operations: readonly Operation[] = [
  ...firewallOperations,
  ...filterOperations,
  ...attackOperations,
  ...userOperations,
  ...networkOperations,
  ...serviceOperations,
  ...operatorOperations,
];
