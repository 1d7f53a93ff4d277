/** Accounts with their subnets, as rows give them. Owns the columns and the text of a subnet; renders nothing. */

export interface AccountWithSubnets {
  readonly uuid: string;
  readonly role: 'operator' | 'provider' | 'user';
  readonly provider_uuid: string | null;
  readonly name: string;
  readonly username: string | null;
  readonly email: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** In address order, IPv4 first; a single address without its length. */
  readonly subnets: readonly string[];
}

/** Of `account a`. */
export const accountColumns = `a.uuid::text as uuid, a.role, a.provider_uuid::text as provider_uuid, a.name, a.username,
  a.email, a.created_at, a.updated_at,
  array(select case when masklen(s.subnet) = case family(s.subnet) when 4 then 32 else 128 end
      then host(s.subnet) else s.subnet::text end
    from subnet s where s.account_uuid = a.uuid order by s.subnet) as subnets`;
