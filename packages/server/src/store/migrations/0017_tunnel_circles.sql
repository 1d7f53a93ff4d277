-- A tunnel's own packets go into whichever tunnel routes its endpoint. That is at most one, as no address is routed twice:
-- so whatever leads into a circle is a chain, and a change that closes one is met again on the chain of what it changed.

-- The tunnels that packets to an address go into, one after the other, but for one of them. Ends at 64: each takes 28 octets
-- at least, and of 1500 nothing is left then.
create function tunnel_chain(address inet, leaving_out uuid)
returns table (depth integer, tunnel_uuid uuid, routed cidr, endpoint inet) language sql stable as $$
  with recursive chain as (
    select 1 as depth, s.tunnel_uuid, s.routed, t.endpoint
    from tunnel_subnet s join tunnel t on t.uuid = s.tunnel_uuid
    where s.routed >>= address and s.tunnel_uuid is distinct from leaving_out
    union all
    select c.depth + 1, s.tunnel_uuid, s.routed, t.endpoint
    from chain c
    join tunnel_subnet s on s.routed >>= c.endpoint and s.tunnel_uuid is distinct from leaving_out
    join tunnel t on t.uuid = s.tunnel_uuid
    where c.depth < 64
  )
  select * from chain
$$;

-- As with routers' addresses: a constraint over two tables, under the turn.
create function tunnels_make_no_circle() returns trigger language plpgsql as $$
declare
  met boolean;
begin
  perform next_number from tunnel_turn for update;
  if tg_name = 'tunnel_subnet_no_circle' then
    met := exists (
      select from tunnel t left join lateral tunnel_chain(t.endpoint, t.uuid) c on true
      where t.uuid = new.tunnel_uuid and (t.endpoint <<= new.routed or c.endpoint <<= new.routed or c.depth = 64)
    );
  elsif tg_op = 'INSERT' or new.endpoint <> old.endpoint then
    met := exists (
      select from tunnel_chain(new.endpoint, new.uuid) c
      where c.depth = 64
        or exists (select from tunnel_subnet s where s.tunnel_uuid = new.uuid and s.routed >>= c.endpoint)
    ) or exists (select from tunnel_subnet s where s.tunnel_uuid = new.uuid and s.routed >>= new.endpoint);
  end if;
  if met then
    raise exception using errcode = 'exclusion_violation', constraint = tg_name, table = tg_table_name,
      message = format('violates %s', tg_name);
  end if;
  return null;
end $$;

create constraint trigger tunnel_subnet_no_circle after insert or update of routed on tunnel_subnet
  for each row execute function tunnels_make_no_circle();
create constraint trigger tunnel_endpoint_no_circle after insert or update of endpoint on tunnel
  for each row execute function tunnels_make_no_circle();
