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
