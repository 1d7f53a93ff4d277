/**
 * The tunnel as rows give it to http and commands: what an answer needs, with the fields still as JSON text and the
 * ends that routers have for it. Owns the columns that are selected; renders nothing.
 */

import type { ProbeMinute } from '@levee/core/tunnel/probe-window.ts';
import type { TunnelType } from '@levee/core/tunnel/tunnel.ts';
import { milliseconds, type StoredRow, storedColumns } from './stored-row.ts';

/** How the customer's end answered a router. */
export interface ProbeRow {
  /** Of the last report, milliseconds since 1970. */
  readonly at_ms: number;
  readonly last_answer_ms: number | null;
  readonly minutes: readonly ProbeMinute[];
}

/** A router's end that is in use. */
export interface TunnelEndRow {
  readonly router_uuid: string;
  readonly router: string;
  readonly location: string;
  readonly local_endpoint: string;
  readonly number: number;
  /** A /31 and a /127. */
  readonly inner_ipv4: string;
  readonly inner_ipv6: string;
  /** Null: the router has reported none. */
  readonly probe: ProbeRow | null;
}

export interface TunnelRow extends StoredRow {
  readonly type: TunnelType;
  readonly endpoint: string;
  /** By their numbers: mostly the order in which they were handed out. */
  readonly ends: readonly TunnelEndRow[];
}

/** Of `tunnel r` and the lateral join `endsJoin`. */
export const tunnelColumns = `${storedColumns}, r.type, host(r.endpoint) as endpoint, e.ends`;

export const endsJoin = `left join lateral (
    select coalesce(json_agg(json_build_object('router_uuid', o.uuid, 'router', o.name, 'location', l.name,
        'local_endpoint', host(e.local_endpoint), 'number', e.number, 'inner_ipv4', e.inner_ipv4::text,
        'inner_ipv6', e.inner_ipv6::text, 'probe', case when p.at is not null then json_build_object(
          'at_ms', ${milliseconds('p.at')}, 'last_answer_ms', ${milliseconds('p.last_answer_at')}, 'minutes', p.minutes)
        end) order by e.number), '[]') as ends
    from tunnel_end e join router o on o.uuid = e.router_uuid join location l on l.uuid = o.location_uuid
    left join tunnel_probe p on p.tunnel_uuid = e.tunnel_uuid and p.router_uuid = e.router_uuid
    where e.tunnel_uuid = r.uuid and not e.retired
  ) e on true`;
