-- Attacks, whoever found them, and the BGP FlowSpec rules that came of them.

create table attack (
  uuid uuid not null,
  sequence bigint not null,
  -- Who held the address when the attack began. History: it stays when the addresses go to someone else.
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  dst cidr not null,
  -- `levee` for the detector here, else the name of the system that told of it.
  source text not null,
  -- That system's own identifier: tells a repetition from another attack.
  external_id text,
  vectors text[] not null default '{}',
  started_at timestamptz not null,
  ended_at timestamptz,
  peak_pps bigint not null default 0,
  peak_bps bigint not null default 0,
  mitigation text not null default 'observe',
  -- Further facts as they are answered: thresholds that fired, top sources and ports, measured timings.
  details json not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  constraint attack_pkey primary key (uuid),
  constraint attack_sequence unique (sequence),
  constraint attack_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint attack_external unique (source, external_id),
  constraint attack_mitigation check (mitigation in ('observe', 'edge', 'flowspec', 'rtbh')),
  constraint attack_times check (ended_at is null or ended_at >= started_at),
  constraint attack_peaks check (peak_pps >= 0 and peak_bps >= 0)
);

create index attack_of_owner on attack (owner_uuid, sequence);
create index attack_of_provider on attack (provider_uuid, sequence);
create index attack_dst on attack using spgist (dst inet_ops);

-- What was measured while it lasted.
create table attack_sample (
  attack_uuid uuid not null,
  at timestamptz not null,
  pps bigint not null,
  bps bigint not null,
  constraint attack_sample_pkey primary key (attack_uuid, at),
  constraint attack_sample_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

create table flowrule (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  dst cidr not null,
  attack_uuid uuid,
  -- Canonical wire fields (components, action, ratelimit), in their fixed order.
  fields json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  deletion_marked_at timestamptz,
  -- The change_position that the BGP speaker has, and since when; written by its reconciler alone.
  applied_position bigint,
  applied_at timestamptz,
  failure text,
  constraint flowrule_pkey primary key (uuid),
  constraint flowrule_sequence unique (sequence),
  constraint flowrule_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint flowrule_attack foreign key (attack_uuid) references attack (uuid)
);

create index flowrule_of_owner on flowrule (owner_uuid, sequence);
create index flowrule_of_provider on flowrule (provider_uuid, sequence);
create index flowrule_dst on flowrule using spgist (dst inet_ops);
create index flowrule_of_attack on flowrule (attack_uuid) where attack_uuid is not null;
create index flowrule_expiring on flowrule (expires_at) where expires_at is not null and deletion_marked_at is null;
