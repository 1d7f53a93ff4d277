/** Requests for the audit log and for quotas. Test code only. */
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function auditCases({ world, byUser, byOperator }: CaseKit): OperationCases {
  const { sibling } = world.holders;
  return {
    listAudit: { good: async () => byUser({ query: '?kind=api_key&order=desc&limit=5' }), bad: {} },
    readQuota: { good: () => byOperator({}, { account_uuid: sibling.uuid }), bad: {} },
    setQuota: { good: () => byOperator({ body: { webhooks: null } }, { account_uuid: sibling.uuid }), bad: {} },
  };
}
