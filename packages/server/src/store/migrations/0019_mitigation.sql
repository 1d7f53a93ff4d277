-- Measures against attacks: rules of the edge and flowrules that the service makes itself, and takes back.

alter table firewall_rule
  -- `attack`: a measure, which lives with its attack. `operator`: one that the operator keeps.
  add column origin text not null default 'customer',
  add column attack_uuid uuid,
  -- `vector: what of it` (core's mitigation/measure.ts).
  add column purpose text,
  add constraint firewall_rule_origin check (origin in ('customer', 'attack', 'operator')),
  add constraint firewall_rule_measure check (
    (origin = 'customer') = (attack_uuid is null) and (origin = 'customer') = (purpose is null)
  ),
  add constraint firewall_rule_attack foreign key (attack_uuid) references attack (uuid);

create index firewall_rule_of_attack on firewall_rule (attack_uuid) where attack_uuid is not null;

alter table flowrule
  add column origin text not null default 'policy',
  add column purpose text,
  -- Why it is held, where the service holds it: it may let go of it again.
  add column held_by text,
  -- With `accept`: the customer's rule.
  add column held_rule uuid,
  -- It may hit what customers accept: by its policy, or because the operator released it.
  add column overrides_accept boolean not null default false,
  -- The operator announced it by hand: its policy does not hold it any more.
  add column released boolean not null default false,
  -- Rules changed by transactions before this one were looked at for what they accept.
  add column judged_xid xid8,
  add constraint flowrule_origin check (origin in ('attack', 'policy', 'operator')),
  add constraint flowrule_held_by check (
    held_by is null or (held_by in ('policy', 'accept', 'budget') and held is not null)
  ),
  add constraint flowrule_held_rule check (held_rule is null or held_by = 'accept');

update flowrule set origin = 'attack', purpose = 'total:rest' where attack_uuid is not null;

alter table flowrule
  add constraint flowrule_measure check (origin <> 'attack' or (attack_uuid is not null and purpose is not null));

create index flowrule_judged on flowrule (judged_xid)
  where origin in ('attack', 'operator') and deletion_marked_at is null and (held_by is null or held_by = 'accept');

-- What somebody took back by hand: it is not made again for that attack.
create table waived_measure (
  attack_uuid uuid not null,
  -- `firewall_rule` or `flowrule`.
  kind text not null,
  purpose text not null,
  at timestamptz not null default now(),
  constraint waived_measure_pkey primary key (attack_uuid, kind, purpose),
  constraint waived_measure_attack foreign key (attack_uuid) references attack (uuid) on delete cascade,
  constraint waived_measure_kind check (kind in ('firewall_rule', 'flowrule'))
);

alter table attack
  -- When its measures were last changed: they do not follow every report.
  add column measures_at timestamptz,
  -- [{"vector": …, "where": "edge" | "flowspec", "text": …}]: what could not be said there.
  add column measure_notes json not null default '[]';

-- Measures that are to be looked at again though no detector tells of their attack: there is another policy or another
-- holder, or a vector of which nothing was seen is not waited for any longer. Rows go when that was done.
create table mitigation_review (
  sequence bigint generated always as identity,
  due_at timestamptz not null default clock_timestamp(),
  -- Of attacks on anything of it; null: on anything.
  dst cidr,
  -- Of this one alone.
  attack_uuid uuid,
  constraint mitigation_review_pkey primary key (sequence)
);

create index mitigation_review_due on mitigation_review (due_at);

-- Whichever command writes policies, gives addresses or takes them.
create function review_where_moved() returns trigger language plpgsql as $$
begin
  insert into mitigation_review (dst) select subnet from moved;
  return null;
end $$;

create trigger subnet_given_reviews after insert on subnet referencing new table as moved
  for each statement execute function review_where_moved();
create trigger subnet_taken_reviews after delete on subnet referencing old table as moved
  for each statement execute function review_where_moved();

create function review_by_policy() returns trigger language plpgsql as $$
begin
  insert into mitigation_review (dst) select subnet from written where account_uuid is null
    union all select s.subnet from written w join subnet s on s.account_uuid = w.account_uuid;
  return null;
end $$;

create trigger policy_made_reviews after insert on detection_policy referencing new table as written
  for each statement execute function review_by_policy();
create trigger policy_changed_reviews after update on detection_policy referencing new table as written
  for each statement execute function review_by_policy();
create trigger policy_removed_reviews after delete on detection_policy referencing old table as written
  for each statement execute function review_by_policy();
