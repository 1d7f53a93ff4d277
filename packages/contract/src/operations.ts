/** Every operation of the interface, once. An operation that no server registers answers 404 there. */
import type { Operation } from './operation.ts';
import { attackOperations } from './operations/attack.ts';
import { auditOperations } from './operations/audit.ts';
import { detectionOperations } from './operations/detection.ts';
import { eventOperations } from './operations/event.ts';
import { filterOperations } from './operations/filter.ts';
import { firewallOperations } from './operations/firewall.ts';
import { mitigationOperations } from './operations/mitigation.ts';
import { operatorOperations } from './operations/operator.ts';
import { quotaOperations } from './operations/quota.ts';
import { rdnsOperations } from './operations/rdns.ts';
import { serviceOperations } from './operations/service.ts';
import { speakerOperations } from './operations/speaker.ts';
import { tunnelOperations } from './operations/tunnel.ts';
import { userOperations } from './operations/user.ts';
import { webhookOperations } from './operations/webhook.ts';

export const operations: readonly Operation[] = [
  ...firewallOperations,
  ...filterOperations,
  ...attackOperations,
  ...userOperations,
  ...tunnelOperations,
  ...rdnsOperations,
  ...serviceOperations,
  ...eventOperations,
  ...webhookOperations,
  ...auditOperations,
  ...operatorOperations,
  ...mitigationOperations,
  ...quotaOperations,
  ...speakerOperations,
  ...detectionOperations,
];
