-- What is known of the BGP speaker, written by the replica that leads it; one row once there was a speaker. Flowrules'
-- states are derived from it: while it is away, nothing counts as announced.
create table bgp_speaker (
  singleton boolean not null default true,
  name text not null,
  address text not null,
  version text,
  -- Why it is away; null: it has everything that it should have.
  trouble text,
  -- Of the trouble, or of the connection.
  since timestamptz not null,
  -- [{address, asn, established}]; null: the speaker does not tell.
  peers json,
  flow_routes integer not null,
  blackhole_routes integer not null,
  -- Routes of others, through the same speaker.
  foreign_routes integer not null,
  checked_at timestamptz not null,
  constraint bgp_speaker_pkey primary key (singleton),
  constraint bgp_speaker_only_one check (singleton)
);

-- What the speaker may have, or refuses: looked through whenever all of it is compared.
create index flowrule_applied on flowrule (uuid) where applied_position is not null;
