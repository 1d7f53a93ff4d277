/** All rows of the matrix, area by area. Test code only. */
import { attackRows } from './matrix/attack.ts';
import { auditRows } from './matrix/audit.ts';
import { detectionRows } from './matrix/detection.ts';
import { eventRows } from './matrix/event.ts';
import { filterRows } from './matrix/filter.ts';
import { firewallRows } from './matrix/firewall.ts';
import { mitigationRows } from './matrix/mitigation.ts';
import { operatorRows } from './matrix/operator.ts';
import { rdnsRows } from './matrix/rdns.ts';
import { serviceRows } from './matrix/service.ts';
import { tunnelRows } from './matrix/tunnel.ts';
import { userRows } from './matrix/user.ts';
import { webhookRows } from './matrix/webhook.ts';
import type { MatrixKit, Rows } from './matrix.ts';

export function matrixRows(kit: MatrixKit): Rows {
  return {
    ...firewallRows(kit),
    ...attackRows(kit),
    ...filterRows(kit),
    ...userRows(kit),
    ...serviceRows(kit),
    ...auditRows(kit),
    ...eventRows(kit),
    ...webhookRows(kit),
    ...operatorRows(kit),
    ...mitigationRows(kit),
    ...detectionRows(kit),
    ...tunnelRows(kit),
    ...rdnsRows(kit),
  };
}
