-- Who did what to which object, from where: written in the transaction that did it. The log's order is (xid, sequence),
-- and what lies below the transaction horizon is shown: so whoever follows it is never overtaken by a late commit.

create table audit (
  sequence bigint not null generated always as identity,
  xid xid8 not null default pg_current_xact_id(),
  -- Behind xid: when it was drawn the transaction had its number, so that none with a higher one wrote earlier than the
  -- beginning of one with a lower one.
  written_at timestamptz not null default clock_timestamp(),
  -- Of the transaction's beginning.
  at timestamptz not null default date_trunc('milliseconds', now()),
  -- Null: the service itself (expiry, an unconfirmed change undone). No foreign key: the log outlives accounts and keys.
  actor_uuid uuid,
  actor_role text,
  key_uuid uuid,
  source inet,
  request_id text,
  -- The operation's id in the contract, or the service's own word for what it did.
  operation text not null,
  kind text not null,
  object_uuid uuid not null,
  -- Whose object it is; null for what belongs to the installation.
  owner_uuid uuid,
  provider_uuid uuid,
  before json,
  after json,
  constraint audit_pkey primary key (sequence)
);

create index audit_in_order on audit (xid, sequence);
create index audit_of_object on audit (object_uuid, xid, sequence);
create index audit_of_owner on audit (owner_uuid, xid, sequence);
create index audit_of_provider on audit (provider_uuid, xid, sequence);
-- What an account did to its own is found by its owner: that is nearly everything, and is not indexed twice.
create index audit_of_actor on audit (actor_uuid, xid, sequence) where actor_uuid is distinct from owner_uuid;
-- With the transaction: which part of the log a stretch of time is, is read from here alone.
create index audit_by_age on audit (written_at, xid);
