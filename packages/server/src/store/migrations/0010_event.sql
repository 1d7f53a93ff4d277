-- Events as clients are told of them, and the webhooks that carry them.

-- Written by one replica at a time (../../events/election.ts): sequences become visible in their order.
create table event (
  sequence bigint not null generated always as identity,
  at timestamptz not null default clock_timestamp(),
  name text not null,
  object_uuid uuid not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  -- The object as a read answered it then.
  data json not null,
  constraint event_pkey primary key (sequence)
);

create index event_of_owner on event (owner_uuid, sequence);
create index event_of_provider on event (provider_uuid, sequence);

-- One row, made by the first replica that writes events: what had changed before it is no event.
create table event_log (
  singleton boolean not null default true,
  -- Part of every event's identifier; another one when entries of the change log were missed.
  epoch text not null,
  -- Which change log the cursor belongs to (../log-identity.ts), and how far it has been followed.
  log text not null,
  xid xid8 not null,
  position bigint not null,
  -- Events up to here are forgotten, but for those that a webhook's delivery still shows.
  floor bigint not null default 0,
  constraint event_log_pkey primary key (singleton),
  constraint event_log_single check (singleton)
);

-- What was last told of each object that was told of: so that each transition is told once.
create table event_object (
  object_uuid uuid not null,
  kind text not null,
  owner_uuid uuid not null,
  provider_uuid uuid not null,
  -- The change that it was told of: the object's change_position.
  change_position bigint not null,
  state text not null,
  -- Something is still to come of that change.
  open boolean not null,
  event_sequence bigint,
  constraint event_object_pkey primary key (object_uuid)
);

create index event_object_open on event_object (object_uuid) where open;

-- One row: events up to here have their deliveries (../../backends/webhook/fan-out.ts).
create table webhook_place (
  singleton boolean not null default true,
  sequence bigint not null default 0,
  constraint webhook_place_pkey primary key (singleton),
  constraint webhook_place_single check (singleton)
);
insert into webhook_place default values;

create table webhook (
  uuid uuid not null,
  owner_uuid uuid not null,
  role text not null,
  url text not null,
  -- Names, `firewall_rule.*`, or `*`.
  events text[] not null,
  description text,
  disabled boolean not null default false,
  -- Events up to here are none of its: they were before it was made or enabled.
  after_sequence bigint not null,
  -- The key that it was set with, if that one has limits: they are the webhook's too.
  key_uuid uuid,
  -- Why the service itself disabled it.
  disabled_reason text,
  -- `whsec_…`; needed in clear to sign with.
  secret text not null,
  -- Signs too until then.
  former_secret text,
  former_secret_until timestamptz,
  -- Since when nothing was delivered, though it was tried.
  failing_since timestamptz,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Gone for everybody; the row stays until its deliveries are removed, some at a time.
  deletion_marked_at timestamptz,
  constraint webhook_pkey primary key (uuid),
  constraint webhook_owner foreign key (owner_uuid, role) references account (uuid, role),
  constraint webhook_key foreign key (key_uuid) references api_key (uuid),
  constraint webhook_events check (cardinality(events) > 0),
  constraint webhook_former_secret check ((former_secret is null) = (former_secret_until is null))
);

create index webhook_of_owner on webhook (owner_uuid, created_at);
create index webhook_of_key on webhook (key_uuid) where key_uuid is not null;
create index webhook_of_operator on webhook (uuid) where role = 'operator';

create table webhook_delivery (
  uuid uuid not null,
  sequence bigint not null generated always as identity,
  webhook_uuid uuid not null,
  name text not null,
  -- Null: a test, which is no event of an object, with its own data.
  event_sequence bigint,
  event_id text,
  test_data json,
  created_at timestamptz not null default clock_timestamp(),
  state text not null default 'pending',
  -- Of this round: a repetition that was asked for begins another.
  round_at timestamptz not null default clock_timestamp(),
  round_attempts integer not null default 0,
  next_attempt_at timestamptz default clock_timestamp(),
  ended_at timestamptz,
  -- [{"at": …, "status": …, "duration_ms": …, "error": …}, …], the latest last.
  attempts jsonb not null default '[]',
  constraint webhook_delivery_pkey primary key (uuid),
  constraint webhook_delivery_webhook foreign key (webhook_uuid) references webhook (uuid),
  constraint webhook_delivery_event foreign key (event_sequence) references event (sequence),
  constraint webhook_delivery_content check ((event_sequence is null) = (test_data is not null)),
  constraint webhook_delivery_once unique (webhook_uuid, event_sequence),
  constraint webhook_delivery_state check (state in ('pending', 'delivered', 'given_up', 'cancelled')),
  constraint webhook_delivery_due check ((state = 'pending') = (next_attempt_at is not null)),
  constraint webhook_delivery_ended check ((state = 'pending') = (ended_at is null))
);

create index webhook_delivery_due_at on webhook_delivery (webhook_uuid, next_attempt_at) where state = 'pending';
create index webhook_delivery_of_webhook on webhook_delivery (webhook_uuid, sequence);
create index webhook_delivery_of_event on webhook_delivery (event_sequence) where event_sequence is not null;
create index webhook_delivery_by_end on webhook_delivery (ended_at) where ended_at is not null;
