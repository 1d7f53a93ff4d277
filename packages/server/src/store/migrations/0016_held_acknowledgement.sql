-- A router that has put rules and filters in force further than it acknowledges, because its tunnels are not as far.
alter table router add column waits_for_tunnels boolean not null default false;
