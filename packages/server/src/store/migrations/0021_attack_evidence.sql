-- What is kept of an attack beside its row: how it went, what its packets looked like, some of them, and how long each step
-- took. All of it bounded by attack, by age and in all (../../commands/attack-evidence.ts, ../../sweep/attack-retention.ts).

-- Of an attack on a subnet the part of somebody who holds some of it: an attack of theirs, whose dst is the whole subnet and
-- all else their share. It has no external id: reports are of the whole.
alter table attack add column part_of uuid,
  add constraint attack_part_of foreign key (part_of) references attack (uuid),
  add constraint attack_part_unnamed check (part_of is null or external_id is null);
create index attack_parts on attack (part_of) where part_of is not null;

create table attack_evidence (
  attack_uuid uuid not null,
  -- The detector's clock: of the report that was taken last.
  measured_at timestamptz not null,
  -- So far, scaled by the sampling rates; `sampled`: records that this was made of.
  packets bigint not null,
  bytes bigint not null,
  sampled bigint not null,
  -- As the detector told them (contract's detector.ts).
  profile json not null,
  entries json not null,
  -- Of the profile the rates alone are the holder's: what the packets look like is told by those that are kept.
  narrowed boolean not null default false,
  -- Rows kept in the two tables below.
  kept integer not null default 0,
  constraint attack_evidence_pkey primary key (attack_uuid),
  constraint attack_evidence_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

create table attack_timeline (
  attack_uuid uuid not null,
  -- How long it is an average of: 1 or 60.
  seconds smallint not null,
  at timestamptz not null,
  pps bigint not null,
  bps bigint not null,
  -- By vector.
  vectors json not null,
  constraint attack_timeline_pkey primary key (attack_uuid, seconds, at),
  constraint attack_timeline_seconds check (seconds in (1, 60)),
  constraint attack_timeline_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

create table attack_packet (
  attack_uuid uuid not null,
  -- The same packet of a report that is sent again has the same one: a hash, by which also is decided which ones stay.
  mark bigint not null,
  at timestamptz not null,
  scale double precision not null,
  exporter text not null,
  interface bigint,
  -- IP total length of the packet as it was.
  length integer not null,
  -- Its first octets, from the IP header on.
  header bytea not null,
  constraint attack_packet_pkey primary key (attack_uuid, mark),
  constraint attack_packet_header check (octet_length(header) <= 128),
  constraint attack_packet_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

-- How long the steps took: known one after the other (../../events/attack-timings.ts).
create table attack_timing (
  attack_uuid uuid not null,
  -- The detector's clock.
  detected_at timestamptz not null,
  detect_ms double precision not null,
  -- This database's: the last statement of the transaction that has the first measures. Null: there are none yet.
  decided_at timestamptz,
  decide_ms double precision,
  announce_ms double precision,
  enforce_ms double precision,
  -- Nothing more is to come of it.
  followed boolean not null default false,
  constraint attack_timing_pkey primary key (attack_uuid),
  constraint attack_timing_attack foreign key (attack_uuid) references attack (uuid) on delete cascade
);

create index attack_timing_open on attack_timing (decided_at) where decided_at is not null and not followed;

-- Recent traffic is asked for of detectors by way of these, so that any replica may ask and any may have the detector.
-- Both are of the moment: rows go when the answer was read.
create unlogged table sample_request (
  uuid uuid not null,
  dst cidr not null,
  seconds integer not null,
  most integer not null,
  asked_at timestamptz not null default clock_timestamp(),
  -- How many detectors it was told to.
  told integer not null default 0,
  constraint sample_request_pkey primary key (uuid)
);

create unlogged table sample_answer (
  request_uuid uuid not null,
  detector_uuid uuid not null,
  held integer not null,
  -- As the detector sent them, checked.
  packets json not null,
  constraint sample_answer_pkey primary key (request_uuid, detector_uuid),
  constraint sample_answer_request foreign key (request_uuid) references sample_request (uuid) on delete cascade
);
