-- How many live objects of a kind an account may hold; without a row, any number. A provider's counts its users' too.

create table quota (
  account_uuid uuid not null,
  -- As the interface calls it: firewall_rules, filters, ….
  kind text not null,
  maximum integer not null,
  updated_at timestamptz not null default now(),
  constraint quota_pkey primary key (account_uuid, kind),
  constraint quota_account foreign key (account_uuid) references account (uuid) on delete cascade,
  constraint quota_maximum check (maximum >= 0)
);

-- Ids of the operations that the key may call; null: all of its role's.
alter table api_key add column operations text[] constraint api_key_operations check (cardinality(operations) > 0);

-- Requests a minute; null: as the installation is set.
alter table api_key add column rate_limit integer constraint api_key_rate_limit check (rate_limit > 0);
