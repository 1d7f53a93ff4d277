-- Tunnels, the subnets routed into them, and one end per router: what was allocated for it.

create table tunnel (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  endpoint inet not null,
  type text not null,
  -- Canonical wire fields (ips, endpoint, type, locations), in their fixed order.
  fields json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  deletion_marked_at timestamptz,
  constraint tunnel_pkey primary key (uuid),
  constraint tunnel_sequence unique (sequence),
  constraint tunnel_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint tunnel_uuid_owner unique (uuid, owner_uuid),
  constraint tunnel_type check (type in ('GRE', 'Geneve'))
);

create index tunnel_of_owner on tunnel (owner_uuid, sequence);
create index tunnel_of_provider on tunnel (provider_uuid, sequence);
create index tunnel_expiring on tunnel (expires_at) where expires_at is not null and deletion_marked_at is null;
create index tunnel_deleting on tunnel (change_xid, change_position) where deletion_marked_at is not null;

-- Gone as soon as the tunnel is marked for deletion: the addresses can be routed elsewhere at once.
create table tunnel_subnet (
  tunnel_uuid uuid not null,
  owner_uuid uuid not null,
  routed cidr not null,
  -- The owner's grant that covers it.
  subnet cidr not null,
  constraint tunnel_subnet_pkey primary key (tunnel_uuid, routed),
  constraint tunnel_subnet_tunnel foreign key (tunnel_uuid, owner_uuid)
    references tunnel (uuid, owner_uuid) on delete cascade,
  constraint tunnel_subnet_held foreign key (owner_uuid, subnet)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint tunnel_subnet_inside check (routed <<= subnet),
  constraint tunnel_subnet_overlap exclude using gist (routed inet_ops with &&)
);

create index tunnel_subnet_of_subnet on tunnel_subnet (owner_uuid, subnet);

-- What a router was given for a tunnel. It stays until the tunnel's row goes, which is when no router has the device any
-- more: an end that a change put out of scope is retired, and has the same again when it comes back.
create table tunnel_end (
  tunnel_uuid uuid not null,
  router_uuid uuid not null,
  local_endpoint inet not null,
  -- GRE's key or Geneve's VNI. Unique in the installation, as are the inner addresses that go with it.
  number bigint not null,
  inner_ipv4 cidr not null,
  inner_ipv6 cidr not null,
  retired boolean not null default false,
  -- The customer's endpoint, where packets carry no key: only it tells the router's tunnels apart then.
  unkeyed_endpoint inet,
  constraint tunnel_end_pkey primary key (tunnel_uuid, router_uuid),
  constraint tunnel_end_tunnel foreign key (tunnel_uuid) references tunnel (uuid) on delete cascade,
  constraint tunnel_end_router foreign key (router_uuid) references router (uuid) on delete cascade,
  constraint tunnel_end_number unique (number),
  constraint tunnel_end_number_positive check (number > 0),
  constraint tunnel_end_inner_ipv4 unique (inner_ipv4),
  constraint tunnel_end_inner_ipv6 unique (inner_ipv6),
  constraint tunnel_end_unkeyed unique (router_uuid, unkeyed_endpoint)
);

create index tunnel_end_of_router on tunnel_end (router_uuid);

-- Where the search for the next free number begins. Its one row is locked by whoever gives ends to tunnels: so every
-- tunnel meets every router, and no number is given twice.
create table tunnel_turn (
  next_number bigint not null
);

insert into tunnel_turn (next_number) values (1);

-- Where tunnels end at a router: one address a family at most, each at one router only.
create table router_address (
  router_uuid uuid not null,
  address inet not null,
  family integer generated always as (family(address)) stored,
  constraint router_address_pkey primary key (router_uuid, family),
  constraint router_address_router foreign key (router_uuid) references router (uuid) on delete cascade,
  constraint router_address_taken unique (address),
  -- What no router can be reached at; which others are refused is the code's to say.
  constraint router_address_usable check (
    masklen(address) = case family(address) when 4 then 32 else 128 end
    and not address <<= any (
      '{0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3, ::/127, fe80::/10, ff00::/8}'::inet[]
    )
  )
);

-- Of doubles the oldest router keeps it. No tunnel has ended at any of them yet.
insert into router_address (router_uuid, address)
  select r.uuid, host(a.address)::inet from router r cross join lateral unnest(r.tunnel_addresses) a (address)
  where not a.address <<= any (
    '{0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3, ::/127, fe80::/10, ff00::/8}'::inet[]
  )
  order by r.created_at, r.uuid
  on conflict do nothing;

alter table router drop column tunnel_addresses;

-- The address of a router is neither routed into a tunnel nor the far end of one: the tunnels' own packets would go in
-- circles. Constraints over two tables; each waits for the turn, so that it sees what others were about to commit.
create function router_addresses_stay_outside() returns trigger language plpgsql as $$
declare
  met boolean;
begin
  perform next_number from tunnel_turn for update;
  if tg_name = 'tunnel_subnet_no_router' then
    met := exists (select from router_address a where a.address <<= new.routed);
  elsif tg_name = 'tunnel_endpoint_no_router' then
    met := exists (select from router_address a where a.address = new.endpoint);
  elsif tg_name = 'router_address_not_routed' then
    met := exists (select from tunnel_subnet s where s.routed >>= new.address);
  else
    met := exists (select from tunnel t where t.endpoint = new.address and t.deletion_marked_at is null);
  end if;
  if met then
    raise exception using errcode = 'exclusion_violation', constraint = tg_name, table = tg_table_name,
      message = format('violates %s', tg_name);
  end if;
  return null;
end $$;

create constraint trigger tunnel_subnet_no_router after insert or update of routed on tunnel_subnet
  for each row execute function router_addresses_stay_outside();
create constraint trigger tunnel_endpoint_no_router after insert or update of endpoint on tunnel
  for each row execute function router_addresses_stay_outside();
create constraint trigger router_address_not_routed after insert or update of address on router_address
  for each row execute function router_addresses_stay_outside();
create constraint trigger router_address_no_endpoint after insert or update of address on router_address
  for each row execute function router_addresses_stay_outside();
