/** Accounts with their subnets, as rows give them. Owns the columns and the text of a subnet; renders nothing. */
import { subnetText } from '../store/subnet-text.ts';

export interface AccountWithSubnets {
  readonly uuid: string;
  readonly role: 'operator' | 'provider' | 'user';
  readonly provider_uuid: string | null;
  readonly name: string;
  readonly username: string | null;
  readonly email: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** Marked for deletion. */
  readonly deleted: boolean;
  /** In address order, IPv4 first; a single address without its length. */
  readonly subnets: readonly string[];
}

/** Of `account a`. */
export const accountColumns = `a.uuid::text as uuid, a.role, a.provider_uuid::text as provider_uuid, a.name, a.username,
  a.email, a.created_at, a.updated_at, a.deletion_marked_at is not null as deleted,
  array(select ${subnetText('s.subnet')}
    from subnet s where s.account_uuid = a.uuid order by s.subnet) as subnets`;
