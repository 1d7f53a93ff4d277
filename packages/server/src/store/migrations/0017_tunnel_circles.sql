-- No live tunnel ends at an address that another routes: its packets would go into that one, and in circles where it is
-- mutual. As with routers' addresses: a constraint over two tables, under the turn.
create function tunnel_endpoints_stay_outside() returns trigger language plpgsql as $$
declare
  met boolean;
begin
  perform next_number from tunnel_turn for update;
  if tg_name = 'tunnel_subnet_no_endpoint' then
    met := exists (
      select from tunnel t
      where t.endpoint <<= new.routed and t.deletion_marked_at is null and t.uuid <> new.tunnel_uuid
    );
  else
    met := exists (select from tunnel_subnet s where s.routed >>= new.endpoint and s.tunnel_uuid <> new.uuid);
  end if;
  if met then
    raise exception using errcode = 'exclusion_violation', constraint = tg_name, table = tg_table_name,
      message = format('violates %s', tg_name);
  end if;
  return null;
end $$;

create constraint trigger tunnel_subnet_no_endpoint after insert or update of routed on tunnel_subnet
  for each row execute function tunnel_endpoints_stay_outside();
create constraint trigger tunnel_endpoint_not_routed after insert or update of endpoint on tunnel
  for each row execute function tunnel_endpoints_stay_outside();

create index tunnel_endpoint on tunnel using gist (endpoint inet_ops) where deletion_marked_at is null;
