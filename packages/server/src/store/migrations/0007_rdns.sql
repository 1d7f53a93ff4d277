-- Reverse DNS: the zones that the operator gave, and one PTR record an address.

create table rdns_zone (
  uuid uuid not null,
  -- Lower case, without the final dot.
  zone text not null,
  driver text not null,
  -- What the driver needs (server, tsig, api_key, …); secrets are never answered.
  settings json not null,
  -- The addresses that it covers. Zones nest or are apart: the commands see to it under a lock on the table.
  first_address inet not null,
  last_address inet not null,
  -- Of an embedded zone: its SOA serial, and the position of the change entry that announced it.
  serial bigint not null default 0,
  serial_position bigint not null default 0,
  -- How the server behind does; written by the reconciler alone. Null trouble: well, as far as known.
  checked_at timestamptz,
  trouble text,
  trouble_since timestamptz,
  last_error text,
  last_error_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint rdns_zone_pkey primary key (uuid),
  constraint rdns_zone_name unique (zone),
  constraint rdns_zone_addresses unique (first_address, last_address),
  constraint rdns_zone_ascending check (first_address <= last_address),
  constraint rdns_zone_driver check (driver in ('embedded', 'rfc2136', 'powerdns')),
  constraint rdns_zone_trouble check (trouble in ('away', 'refused')),
  constraint rdns_zone_trouble_since check ((trouble is null) = (trouble_since is null))
);

create table rdns_record (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  -- The owner's grant that covers the address; null once marked for deletion.
  subnet cidr,
  address inet not null,
  -- The host name, canonical.
  record text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  deletion_marked_at timestamptz,
  -- The change_position that the DNS server has, and since when; written by the reconciler alone, as the failure.
  applied_position bigint,
  applied_at timestamptz,
  -- Why the server does not have the present change, as far as it concerns this record alone.
  failure text,
  -- The change_position that was sent together with refused ones and has not been tried apart from them.
  held_position bigint,
  -- Whether the name resolves back to the address; null: not known.
  forward_confirmed boolean,
  -- When that is to be asked next; null: now.
  forward_due_at timestamptz,
  constraint rdns_record_pkey primary key (uuid),
  constraint rdns_record_sequence unique (sequence),
  constraint rdns_record_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint rdns_record_subnet foreign key (owner_uuid, subnet)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint rdns_record_inside_subnet check (subnet is null or address <<= subnet),
  constraint rdns_record_subnet_until_deleted check ((subnet is null) = (deletion_marked_at is not null)),
  constraint rdns_record_one_address check (masklen(address) = case family(address) when 4 then 32 else 128 end)
);

create unique index rdns_record_address on rdns_record (address) where deletion_marked_at is null;
create index rdns_record_of_owner on rdns_record (owner_uuid, sequence);
create index rdns_record_of_provider on rdns_record (provider_uuid, sequence);
create index rdns_record_of_subnet on rdns_record (owner_uuid, subnet) where subnet is not null;
create index rdns_record_to_apply on rdns_record (change_position) where applied_position is distinct from change_position;
create index rdns_record_deleting on rdns_record (address) where deletion_marked_at is not null;
create index rdns_record_forward on rdns_record (forward_due_at nulls first) where deletion_marked_at is null;
