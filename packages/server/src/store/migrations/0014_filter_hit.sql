-- What filters discarded, router by router, as rule_hit is of what rules matched.
create table filter_hit (
  filter_uuid uuid not null,
  router_uuid uuid not null,
  packets bigint not null,
  bytes bigint not null,
  last_hit_at timestamptz,
  constraint filter_hit_pkey primary key (filter_uuid, router_uuid),
  constraint filter_hit_filter foreign key (filter_uuid) references filter (uuid) on delete cascade,
  constraint filter_hit_router foreign key (router_uuid) references router (uuid) on delete cascade,
  constraint filter_hit_counts check (packets >= 0 and bytes >= 0)
);

create index filter_hit_of_router on filter_hit (router_uuid);
