-- Which log the stored transaction numbers belong to (../log-history.ts). Empty until a control plane has followed it.
create table log_history (
  singleton boolean not null default true,
  identity text not null,
  since timestamptz not null default now(),
  constraint log_history_pkey primary key (singleton),
  constraint log_history_single check (singleton)
);
