/**
 * Quotas on the wire: how many live objects of each kind an account may hold. Owns the kinds' names; an object that is
 * marked for deletion, and a key that is revoked or expired, counts no more.
 */
import Type from 'typebox';
import { accountUuid } from './object.ts';

export const quotaKinds = ['firewall_rules', 'filters', 'tunnels', 'rdns', 'users', 'api_keys', 'webhooks'] as const;
export type QuotaKind = (typeof quotaKinds)[number];

/** What an account may hold itself, whatever its quota: each webhook costs work for each event. */
export const mostOfAnAccount: Partial<Record<QuotaKind, number>> = { webhooks: 20 };

const maximum = Type.Integer({ minimum: 0, maximum: 2147483647 });
const settable = Type.Optional(
  Type.Union([maximum, Type.Null()], { description: 'Objects at most; null or absent: without a quota.' }),
);

/** Only those that are set. */
export const quotas = Type.Object(
  Object.fromEntries(
    quotaKinds.map((kind) => [
      kind,
      Type.Optional(Type.Object({ used: Type.Integer({ minimum: 0 }), maximum }, { additionalProperties: false })),
    ]),
  ),
  {
    $id: 'Quotas',
    additionalProperties: false,
    description:
      "By kind of object, those that are set. A provider's count what it and all of its users hold, a user's its own.",
  },
);

export const quotaSet = Type.Object(Object.fromEntries(quotaKinds.map((kind) => [kind, settable])), {
  $id: 'QuotaSet',
  additionalProperties: false,
});

export const accountQuota = Type.Object(
  { account_uuid: accountUuid, quotas },
  { $id: 'AccountQuota', additionalProperties: false },
);
