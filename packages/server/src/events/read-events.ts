/**
 * Reads events for whoever may see them, page by page. Owns their identifiers and the text in which they are sent, by
 * stream and webhook alike. Writes nothing.
 */
import type pg from 'pg';

/** All of the installation, of a provider and its users, or of one owner. */
export type EventScope = 'all' | { readonly providerUuid: string } | { readonly ownerUuid: string };

export interface StoredEvent {
  readonly sequence: number;
  readonly name: string;
  readonly ownerUuid: string;
  readonly providerUuid: string;
  /** JSON text, on one line: `{"id", "type", "timestamp", "data"}`. */
  readonly text: string;
}

export interface EventPage {
  /** Of all identifiers at present; undefined: events have never been written. */
  readonly epoch: string | undefined;
  /** Events up to here are forgotten. */
  readonly floor: number;
  readonly events: readonly StoredEvent[];
}

/** `epoch` undefined: before everything, or before events have ever been written. */
export interface EventPlace {
  readonly epoch: string | undefined;
  readonly sequence: number;
}

export const eventIdOf = (epoch: string, sequence: number) => `${epoch}-${sequence}`;

/** Undefined: not an id that was ever given. */
export function parseEventId(text: string): EventPlace | undefined {
  if (text === '0') return { epoch: undefined, sequence: 0 };
  const match = /^([0-9a-f]{8})-(\d{1,16})$/.exec(text);
  const sequence = Number(match?.[2]);
  return match === null || !Number.isSafeInteger(sequence) ? undefined : { epoch: match[1], sequence };
}

/** `data` is JSON text already; a line break in it stands between tokens. */
export function eventText(id: string | undefined, name: string, atMilliseconds: number, data: string): string {
  const begin = id === undefined ? '{' : `{"id":"${id}",`;
  const at = new Date(atMilliseconds).toISOString();
  return `${begin}"type":"${name}","timestamp":"${at}","data":${data.replaceAll(/[\r\n]/g, ' ')}}`;
}

export function mayBeTold(scope: EventScope, event: Pick<StoredEvent, 'ownerUuid' | 'providerUuid'>): boolean {
  if (scope === 'all') return true;
  return 'ownerUuid' in scope ? scope.ownerUuid === event.ownerUuid : scope.providerUuid === event.providerUuid;
}

interface Row {
  readonly epoch: string;
  readonly floor: number;
  readonly sequence: number | null;
  readonly at_ms: number;
  readonly name: string;
  readonly owner: string;
  readonly provider: string;
  readonly data: string;
}

/** The next ones after `after`, of the names if they are given. Throws what the driver throws. */
export async function readEvents(
  db: Pick<pg.Pool, 'query'>,
  {
    after,
    limit,
    scope = 'all',
    names,
  }: {
    readonly after: number;
    readonly limit: number;
    readonly scope?: EventScope;
    readonly names?: readonly string[] | undefined;
  },
): Promise<EventPage> {
  const conditions = ['sequence > $1'];
  const values: unknown[] = [after, limit];
  let statement = 'events_read';
  if (scope !== 'all') {
    const column = 'ownerUuid' in scope ? 'owner_uuid' : 'provider_uuid';
    values.push('ownerUuid' in scope ? scope.ownerUuid : scope.providerUuid);
    conditions.push(`${column} = $${values.length}`);
    statement += `_by_${column}`;
  }
  if (names !== undefined) {
    values.push(names);
    conditions.push(`name = any($${values.length}::text[])`);
    statement += '_by_name';
  }
  // Those below the floor are kept for deliveries alone.
  const { rows } = await db.query<Row>({
    name: statement,
    text: `select l.epoch, l.floor, e.* from event_log l left join lateral (
        select sequence, round(date_part('epoch', at) * 1000) as at_ms, name, owner_uuid::text as owner,
          provider_uuid::text as provider, data::text as data
        from event where sequence > l.floor and ${conditions.join(' and ')} order by sequence limit $2
      ) e on true order by e.sequence`,
    values,
  });
  const [first] = rows;
  if (first === undefined) return { epoch: undefined, floor: 0, events: [] };
  const events = rows.flatMap(({ epoch, sequence, at_ms, name, owner, provider, data }) => {
    if (sequence === null) return [];
    const text = eventText(eventIdOf(epoch, sequence), name, at_ms, data);
    return [{ sequence, name, ownerUuid: owner, providerUuid: provider, text }];
  });
  return { epoch: first.epoch, floor: first.floor, events };
}

/** The last event's sequence, which may be forgotten by now. */
export async function readHead(db: Pick<pg.Pool, 'query'>): Promise<EventPlace> {
  const { rows } = await db.query<{ epoch: string; sequence: number }>({
    name: 'events_head',
    text: `select epoch, greatest(floor, coalesce((select max(sequence) from event), 0)) as sequence from event_log`,
  });
  return rows[0] ?? { epoch: undefined, sequence: 0 };
}
