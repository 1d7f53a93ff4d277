-- Filters: one kind of application-aware protection for a destination, placed and owned as firewall rules are.

create table filter (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  -- The owner's grant that covers dst; null once the filter is marked for deletion, which frees the grant.
  subnet cidr,
  dst cidr not null,
  -- The kind's id, as in fields: what a router must be able to do follows from it.
  kind integer not null,
  -- Canonical wire fields, in their fixed order.
  fields json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  deletion_marked_at timestamptz,
  constraint filter_pkey primary key (uuid),
  constraint filter_sequence unique (sequence),
  constraint filter_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint filter_subnet foreign key (owner_uuid, subnet)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint filter_inside_subnet check (subnet is null or dst <<= subnet),
  constraint filter_subnet_until_deleted check ((subnet is null) = (deletion_marked_at is not null))
);

create index filter_of_owner on filter (owner_uuid, sequence);
create index filter_of_provider on filter (provider_uuid, sequence);
create index filter_of_subnet on filter (owner_uuid, subnet) where subnet is not null;
create index filter_dst on filter using spgist (dst inet_ops);
create index filter_expiring on filter (expires_at) where expires_at is not null and deletion_marked_at is null;
create index filter_deleting on filter (change_xid, change_position) where deletion_marked_at is not null;

-- What a router's agent is able to enforce besides rules: `filter:<kind's id>`, `tunnel:<type>`.
alter table router add column capabilities text[] not null default '{}';
