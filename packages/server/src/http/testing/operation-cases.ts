/** The requests of all areas. Test code only. */
import type { ApiFixture } from './api-fixture.ts';
import { caseKit, type OperationCases } from './case-kit.ts';
import { attackCases } from './cases/attack.ts';
import { auditCases } from './cases/audit.ts';
import { detectionCases } from './cases/detection.ts';
import { eventCases } from './cases/event.ts';
import { filterCases } from './cases/filter.ts';
import { firewallCases } from './cases/firewall.ts';
import { mitigationCases } from './cases/mitigation.ts';
import { operatorCases } from './cases/operator.ts';
import { rdnsCases } from './cases/rdns.ts';
import { serviceCases } from './cases/service.ts';
import { tunnelCases } from './cases/tunnel.ts';
import { userCases } from './cases/user.ts';
import { webhookCases } from './cases/webhook.ts';
import type { World } from './world.ts';

export function operationCases(api: ApiFixture, world: World): OperationCases {
  const kit = caseKit(api, world);
  return {
    ...firewallCases(kit),
    ...attackCases(kit),
    ...filterCases(kit),
    ...userCases(kit),
    ...serviceCases(kit),
    ...auditCases(kit),
    ...eventCases(kit),
    ...webhookCases(kit),
    ...operatorCases(kit),
    ...mitigationCases(kit),
    ...detectionCases(kit),
    ...tunnelCases(kit),
    ...rdnsCases(kit),
  };
}
