-- Accounts, keys, firewall rules, the change log, routers and what they report.
-- Ownership is held here, by constraints: no code path can store a rule outside its owner's subnets.
-- Constraint names are part of the seam: the server's code maps them to errors (../violations.ts).

create table account (
  uuid uuid not null,
  role text not null,
  -- A provider is its own provider, so that "everything of a provider" is one comparison.
  provider_uuid uuid,
  provider_role text generated always as (case when provider_uuid is not null then 'provider' end) stored,
  name text not null,
  username text,
  email text,
  password_hash text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deletion_marked_at timestamptz,
  constraint account_pkey primary key (uuid),
  constraint account_role check (role in ('operator', 'provider', 'user')),
  constraint account_uuid_role unique (uuid, role),
  constraint account_uuid_provider unique (uuid, provider_uuid),
  constraint account_provider_exists foreign key (provider_uuid, provider_role) references account (uuid, role),
  constraint account_provider_of_role check (
    case role
      when 'operator' then provider_uuid is null
      when 'provider' then provider_uuid is not null and provider_uuid = uuid
      else provider_uuid is not null and provider_uuid <> uuid
    end
  ),
  constraint account_user_complete check (
    role <> 'user' or (username is not null and email is not null and password_hash is not null)
  )
);

-- An account that is being deleted no longer holds its names.
create unique index account_username on account (provider_uuid, username)
  where role = 'user' and deletion_marked_at is null;
create unique index account_email on account (lower(email)) where deletion_marked_at is null;
create unique index account_provider_name on account (name) where role = 'provider' and deletion_marked_at is null;
create index account_of_provider on account (provider_uuid, created_at);

create table subnet (
  account_uuid uuid not null,
  subnet cidr not null,
  role text not null,
  provider_uuid uuid not null,
  -- The provider's prefix that a user's subnet lies in; null for the provider's own row.
  provider_subnet cidr,
  created_at timestamptz not null default now(),
  constraint subnet_pkey primary key (account_uuid, subnet),
  constraint subnet_role check (role in ('provider', 'user')),
  constraint subnet_account_role foreign key (account_uuid, role) references account (uuid, role),
  constraint subnet_account_provider foreign key (account_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint subnet_provider_holds foreign key (provider_uuid, provider_subnet)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint subnet_inside_provider check ((role = 'user') = (provider_subnet is not null) and subnet <<= provider_subnet),
  constraint subnet_provider_overlap exclude using gist (subnet inet_ops with &&) where (role = 'provider'),
  constraint subnet_user_overlap exclude using gist (subnet inet_ops with &&) where (role = 'user')
);

create index subnet_in_provider on subnet (provider_uuid, provider_subnet);

create table api_key (
  uuid uuid not null,
  account_uuid uuid not null,
  -- SHA-256 of the whole key text.
  hash bytea not null,
  name text not null,
  read_only boolean not null default false,
  -- Null: from anywhere.
  sources cidr[],
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  constraint api_key_pkey primary key (uuid),
  constraint api_key_hash unique (hash),
  constraint api_key_hash_length check (octet_length(hash) = 32),
  constraint api_key_account foreign key (account_uuid) references account (uuid) on delete cascade
);

create index api_key_of_account on api_key (account_uuid, created_at);

-- Positions of changes and creation order of rules are drawn from the same sequence.
create sequence change_position as bigint;

-- Says what to look at, never what it was. Read only below the transaction horizon (../change-log.ts).
create table change (
  xid xid8 not null default pg_current_xact_id(),
  position bigint not null default nextval('change_position'),
  kind text not null,
  object_uuid uuid not null,
  at timestamptz not null default clock_timestamp(),
  constraint change_pkey primary key (xid, position)
);

create index change_by_age on change (at);

-- One row. A cursor below it has lost changes by pruning and needs a snapshot.
create table change_floor (
  singleton boolean not null default true,
  xid xid8 not null,
  position bigint not null,
  constraint change_floor_pkey primary key (singleton),
  constraint change_floor_single check (singleton)
);

insert into change_floor (xid, position) values ('0', 0);

create table firewall_rule (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  -- The owner's grant that covers dst; null once the rule is marked for deletion, which frees the grant.
  subnet cidr,
  dst cidr not null,
  -- Canonical wire fields. json, not jsonb: it keeps the fixed order and is answered as it was stored.
  fields json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  deletion_marked_at timestamptz,
  constraint firewall_rule_pkey primary key (uuid),
  constraint firewall_rule_sequence unique (sequence),
  constraint firewall_rule_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint firewall_rule_subnet foreign key (owner_uuid, subnet)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint firewall_rule_inside_subnet check (subnet is null or dst <<= subnet),
  constraint firewall_rule_subnet_until_deleted check ((subnet is null) = (deletion_marked_at is not null))
);

create index firewall_rule_of_owner on firewall_rule (owner_uuid, sequence);
create index firewall_rule_of_provider on firewall_rule (provider_uuid, sequence);
create index firewall_rule_of_subnet on firewall_rule (owner_uuid, subnet) where subnet is not null;
create index firewall_rule_dst on firewall_rule using spgist (dst inet_ops);
create index firewall_rule_expiring on firewall_rule (expires_at)
  where expires_at is not null and deletion_marked_at is null;
create index firewall_rule_deleting on firewall_rule (change_xid, change_position) where deletion_marked_at is not null;

create table location (
  uuid uuid not null,
  name text not null,
  created_at timestamptz not null default now(),
  constraint location_pkey primary key (uuid),
  constraint location_name unique (name)
);

create table router (
  uuid uuid not null,
  name text not null,
  location_uuid uuid not null,
  tunnel_addresses inet[] not null default '{}',
  -- SHA-256 of the router key; null until the router has enrolled.
  key_hash bytea,
  -- SHA-256 of the one-time token; null once it has been used.
  enrolment_hash bytea,
  enrolment_expires_at timestamptz,
  enrolled_at timestamptz,
  enforcement text,
  enforcement_reason text,
  acked_xid xid8,
  acked_position bigint,
  last_seen_at timestamptz,
  counters_run uuid,
  counters_number bigint,
  status json,
  created_at timestamptz not null default now(),
  constraint router_pkey primary key (uuid),
  constraint router_name unique (name),
  constraint router_location foreign key (location_uuid) references location (uuid),
  constraint router_key_hash unique (key_hash),
  constraint router_enrolment_hash unique (enrolment_hash),
  constraint router_enrolled check ((key_hash is null) = (enrolled_at is null)),
  constraint router_enforcement check (enforcement in ('kernel', 'dry')),
  constraint router_acked check ((acked_xid is null) = (acked_position is null))
);

create table router_ack (
  router_uuid uuid not null,
  xid xid8 not null,
  position bigint not null,
  at timestamptz not null default clock_timestamp(),
  constraint router_ack_pkey primary key (router_uuid, xid, position),
  constraint router_ack_router foreign key (router_uuid) references router (uuid) on delete cascade
);

create index router_ack_by_age on router_ack (at);

create table router_failure (
  router_uuid uuid not null,
  object_uuid uuid not null,
  reason text not null,
  at timestamptz not null default clock_timestamp(),
  constraint router_failure_pkey primary key (router_uuid, object_uuid),
  constraint router_failure_router foreign key (router_uuid) references router (uuid) on delete cascade
);

create table rule_hit (
  rule_uuid uuid not null,
  router_uuid uuid not null,
  packets bigint not null,
  bytes bigint not null,
  last_hit_at timestamptz,
  shared_by integer,
  constraint rule_hit_pkey primary key (rule_uuid, router_uuid),
  constraint rule_hit_rule foreign key (rule_uuid) references firewall_rule (uuid) on delete cascade,
  constraint rule_hit_router foreign key (router_uuid) references router (uuid) on delete cascade,
  constraint rule_hit_counts check (packets >= 0 and bytes >= 0)
);

create index rule_hit_of_router on rule_hit (router_uuid);

create table idempotency (
  key_uuid uuid not null,
  key text not null,
  request_hash bytea not null,
  -- Encrypted under the caller's key: the database alone does not give away what was answered.
  answer bytea not null,
  created_at timestamptz not null default now(),
  constraint idempotency_pkey primary key (key_uuid, key),
  constraint idempotency_api_key foreign key (key_uuid) references api_key (uuid) on delete cascade
);

create index idempotency_by_age on idempotency (created_at);

create table confirmation (
  change_uuid uuid not null,
  owner_uuid uuid not null,
  deadline timestamptz not null,
  -- [{"uuid": …, "before": {…} | null}, …]: see ../undo.ts.
  undo json not null,
  confirmed_at timestamptz,
  rolled_back_at timestamptz,
  created_at timestamptz not null default now(),
  constraint confirmation_pkey primary key (change_uuid),
  constraint confirmation_owner foreign key (owner_uuid) references account (uuid) on delete cascade
);

create index confirmation_due on confirmation (deadline) where confirmed_at is null and rolled_back_at is null;
create index confirmation_of_owner on confirmation (owner_uuid);
