-- Attacks, whoever found them, and the BGP FlowSpec rules that came of them.

create table attack (
  uuid uuid not null,
  sequence bigint not null,
  -- Who held all of dst when the attack was first heard of: a user, else a provider. History: it stays when the addresses
  -- go to someone else, and becomes the provider's when the user's account goes.
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  dst cidr not null,
  -- `levee` for the detector here, else the name of the system that told of it.
  source text not null,
  -- That system's own identifier: tells a repetition from another attack. Of those that have it in common each is the
  -- part of one holder.
  external_id text,
  -- The part of the same attack that belongs to who held dst before.
  continues uuid,
  vectors text[] not null default '{}',
  started_at timestamptz not null,
  -- False: the first that was heard of it is not its start.
  start_told boolean not null,
  -- The latest moment at which it was told to be going on; null: only its end was told.
  news_at timestamptz,
  ended_at timestamptz,
  -- Whether its source told the end, or why it counts as over (core's attack/placement.ts).
  end_reason text,
  -- When its source last told of it, whatever it told; up to a minute old.
  last_reported_at timestamptz not null,
  peak_pps bigint not null default 0,
  peak_bps bigint not null default 0,
  mitigation text not null default 'observe',
  -- Further facts as they are answered (../../commands/attack-row.ts): what fired, top sources and ports, what was done.
  details json not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  change_xid xid8 not null default pg_current_xact_id(),
  change_position bigint not null,
  constraint attack_pkey primary key (uuid),
  constraint attack_sequence unique (sequence),
  constraint attack_owner foreign key (owner_uuid, provider_uuid) references account (uuid, provider_uuid),
  constraint attack_continues foreign key (continues) references attack (uuid),
  constraint attack_mitigation check (mitigation in ('observe', 'edge', 'flowspec', 'rtbh')),
  constraint attack_times check (ended_at is null or ended_at >= started_at),
  constraint attack_end_reason check (end_reason in ('reported', 'silent', 'another_began', 'holder_changed')),
  constraint attack_end_has_reason check ((ended_at is null) = (end_reason is null)),
  constraint attack_peaks check (peak_pps >= 0 and peak_bps >= 0)
);

create index attack_of_owner on attack (owner_uuid, sequence);
create index attack_of_provider on attack (provider_uuid, sequence);
create index attack_dst on attack using spgist (dst inet_ops);
create index attack_named on attack (source, external_id) where external_id is not null;
-- Of which attack a report without an external id is, the times say.
create index attack_unnamed on attack (source, dst, started_at) where external_id is null;
create index attack_silent on attack (last_reported_at) where ended_at is null and source <> 'levee';

-- What was measured while it lasted; bounded (../../commands/attack-samples.ts).
create table attack_sample (
  attack_uuid uuid not null,
  at timestamptz not null,
  -- Null: not told.
  pps bigint,
  bps bigint,
  constraint attack_sample_told check (pps is not null or bps is not null),
  constraint attack_sample_pkey primary key (attack_uuid, at),
  constraint attack_sample_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

create table flowrule (
  uuid uuid not null,
  sequence bigint not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  dst cidr not null,
  -- The provider's prefix that covers dst; null once marked for deletion. No rule is outside protected space, ever: a
  -- BGP session must not carry one.
  prefix cidr,
  attack_uuid uuid,
  -- Canonical wire fields (dst, components, action, …), in their fixed order.
  fields json not null,
  -- What tells the route from others to a BGP speaker: destination and components, canonical.
  nlri text not null,
  -- Why it is not to be announced, as the mitigation policy has it; null: it is.
  held text,
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
  constraint flowrule_attack foreign key (attack_uuid) references attack (uuid),
  constraint flowrule_prefix foreign key (provider_uuid, prefix)
    references subnet (account_uuid, subnet) on update cascade deferrable initially immediate,
  constraint flowrule_inside_prefix check (prefix is null or dst <<= prefix),
  constraint flowrule_prefix_until_deleted check ((prefix is null) = (deletion_marked_at is not null))
);

create unique index flowrule_nlri on flowrule (nlri) where deletion_marked_at is null;
create index flowrule_of_owner on flowrule (owner_uuid, sequence);
create index flowrule_of_provider on flowrule (provider_uuid, sequence);
create index flowrule_of_prefix on flowrule (provider_uuid, prefix) where prefix is not null;
create index flowrule_dst on flowrule using spgist (dst inet_ops);
create index flowrule_of_attack on flowrule (attack_uuid) where attack_uuid is not null;
create index flowrule_expiring on flowrule (expires_at) where expires_at is not null and deletion_marked_at is null;
create index flowrule_gone on flowrule (change_xid) where deletion_marked_at is not null;
