-- Detection: who detects, by which thresholds, from whose telemetry, and what is usual. Attacks that it finds are rows of
-- `attack` with the source `levee`.

create table detector (
  uuid uuid not null,
  name text not null,
  -- SHA-256 of the whole key text.
  key_hash bytea not null,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz,
  -- Since when it has been there without a gap: only then its silence about an attack says something.
  seen_since timestamptz,
  -- Of its present run, and what it last told of itself.
  run uuid,
  status json,
  constraint detector_pkey primary key (uuid),
  constraint detector_name unique (name),
  constraint detector_key_hash unique (key_hash)
);

-- One a scope: the installation (both null), an account, or a subnet. The operator's: a subnet's stays when the addresses
-- go to another provider, and means nothing while nobody holds them.
create table detection_policy (
  uuid uuid not null,
  sequence bigint not null default nextval('change_position'),
  account_uuid uuid,
  subnet cidr,
  -- Canonical wire fields but the scope, in their fixed order.
  settings json not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint detection_policy_pkey primary key (uuid),
  constraint detection_policy_scope unique nulls not distinct (account_uuid, subnet),
  constraint detection_policy_account foreign key (account_uuid) references account (uuid) on delete cascade,
  constraint detection_policy_one_scope check (account_uuid is null or subnet is null)
);

create index detection_policy_subnet on detection_policy using spgist (subnet inet_ops) where subnet is not null;

create table exporter (
  uuid uuid not null,
  sequence bigint not null default nextval('change_position'),
  name text not null,
  -- The address that its datagrams come from.
  source inet not null,
  -- `auto`, `prescaled`, or a number.
  sampling text not null,
  -- SNMP indices; null: all.
  interfaces bigint[],
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint exporter_pkey primary key (uuid),
  constraint exporter_name unique (name),
  constraint exporter_source unique (source),
  constraint exporter_one_address check (masklen(source) = case family(source) when 4 then 32 else 128 end)
);

-- What detectors last told of those who send: live figures, which come anew every ten seconds and need no log.
create unlogged table exporter_figures (
  detector_uuid uuid not null,
  source inet not null,
  told_at timestamptz not null,
  figures json not null,
  constraint exporter_figures_pkey primary key (detector_uuid, source),
  constraint exporter_figures_detector foreign key (detector_uuid) references detector (uuid) on delete cascade
);

-- What is usual of a destination in an hour of the week (0: Monday 00:00 UTC).
create table detection_baseline (
  dst cidr not null,
  vector text not null,
  hour smallint not null,
  pps double precision not null,
  bps double precision not null,
  weight double precision not null,
  updated_at timestamptz not null,
  constraint detection_baseline_pkey primary key (dst, vector, hour),
  constraint detection_baseline_hour check (hour between 0 and 167)
);

create index detection_baseline_by_age on detection_baseline (updated_at);

-- Detectors look at protected space alone and follow it by the change log, whichever command gives or takes addresses.
create function note_subnet_change() returns trigger language plpgsql as $$
begin
  insert into change (kind, object_uuid) select distinct 'subnet', account_uuid from moved;
  return null;
end $$;

create trigger subnet_given after insert on subnet referencing new table as moved
  for each statement execute function note_subnet_change();
create trigger subnet_taken after delete on subnet referencing old table as moved
  for each statement execute function note_subnet_change();

-- What detectors take over, and what is counted of attacks every few seconds.
create index attack_ongoing on attack (source, external_id) where ended_at is null;
