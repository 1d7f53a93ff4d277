/** Who asks: the account behind an API key. Commands trust it; `http/authentication.ts` makes it. */
import type { Role } from '@levee/contract/operation.ts';
import type { KeyLimits } from './key-limits.ts';

export interface Caller {
  readonly keyUuid: string;
  readonly accountUuid: string;
  readonly role: Role;
  /** A provider's own uuid for a provider; null for the operator. */
  readonly providerUuid: string | null;
  /** Of the key that was used. */
  readonly limits: KeyLimits;
}
