-- How the customer's end of a tunnel answers a router. Goes with the end; forgotten when the endpoint is another.
create table tunnel_probe (
  tunnel_uuid uuid not null,
  router_uuid uuid not null,
  -- Of the last report.
  at timestamptz not null,
  last_answer_at timestamptz,
  -- Of the last minutes: see core's tunnel/probe-window.ts.
  minutes json not null,
  constraint tunnel_probe_pkey primary key (tunnel_uuid, router_uuid),
  constraint tunnel_probe_end foreign key (tunnel_uuid, router_uuid)
    references tunnel_end (tunnel_uuid, router_uuid) on delete cascade
);

create index tunnel_probe_of_router on tunnel_probe (router_uuid);
