/**
 * Finds out whether the names of PTR records resolve back to their addresses, for the record's owner to see. Informative
 * only: nothing waits for it and nothing depends on it. Every replica runs one; records are shared by "skip locked".
 */
import { Resolver } from 'node:dns/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { parseAddress } from '@levee/core/net/address.ts';
import type pg from 'pg';

export interface ForwardChecks {
  stop(): Promise<void>;
}

export interface ForwardCheckOptions {
  /** `address` or `address:port`; absent: the system's. */
  readonly resolvers?: readonly string[] | undefined;
  readonly committed: () => void;
  readonly log: (message: string) => void;
  readonly lookEveryMilliseconds?: number;
}

const atOnce = 20;
const answerMilliseconds = 2_000;
const tries = 2;
/** For a replica that died between taking a record and asking. */
const leaseSeconds = 60;
const againSeconds = { confirmed: 6 * 3600, denied: 600, unknown: 300 } as const;

interface Due {
  readonly uuid: string;
  readonly address: string;
  readonly record: string;
}

export function startForwardChecks(pool: pg.Pool, options: ForwardCheckOptions): ForwardChecks {
  const stopping = new AbortController();
  const resolver = new Resolver({ timeout: answerMilliseconds, tries });
  if (options.resolvers !== undefined) resolver.setServers([...options.resolvers]);

  async function run(): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      let more = false;
      try {
        const due = await takeDue(pool);
        more = due.length === atOnce;
        await Promise.all(due.map(check));
        failing = false;
      } catch (error) {
        if (!failing && !stopping.signal.aborted)
          options.log(`forward names cannot be checked: ${(error as Error).message}`);
        failing = true;
      }
      if (more) continue;
      await delay(options.lookEveryMilliseconds ?? 1_000, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function check(due: Due): Promise<void> {
    const confirmed = await resolvesTo(resolver, due.record, due.address);
    if (stopping.signal.aborted) return;
    if (await saveConfirmed(pool, due, confirmed)) options.committed();
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      resolver.cancel();
      await running;
    },
  };
}

/** Undefined: not to be found out at present. */
async function resolvesTo(resolver: Resolver, name: string, address: string): Promise<boolean | undefined> {
  const wanted = parseAddress(address);
  if (!wanted.ok) return undefined;
  const { family, value } = wanted.address;
  try {
    const found = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name));
    return found.some((text) => {
      const read = parseAddress(text);
      return read.ok && read.address.value === value;
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' ? false : undefined;
  }
}

async function takeDue(pool: pg.Pool): Promise<Due[]> {
  const { rows } = await pool.query<Due>({
    name: 'rdns_forward_due',
    text: `update rdns_record r set forward_due_at = now() + make_interval(secs => $1)
      from (
        select uuid from rdns_record
        where deletion_marked_at is null and (forward_due_at is null or forward_due_at <= now())
        order by forward_due_at nulls first limit $2 for update skip locked
      ) due
      where r.uuid = due.uuid
      returning r.uuid::text as uuid, host(r.address) as address, r.record`,
    values: [leaseSeconds, atOnce],
  });
  return rows;
}

/** Whether what is shown is different now. What could not be found out leaves it as it was. */
async function saveConfirmed(pool: pg.Pool, { uuid, record }: Due, confirmed: boolean | undefined): Promise<boolean> {
  const again = confirmed === undefined ? againSeconds.unknown : againSeconds[confirmed ? 'confirmed' : 'denied'];
  const { rows } = await pool.query<{ count: number }>({
    name: 'rdns_forward_save',
    text: `with old as (
        select uuid, forward_confirmed from rdns_record where uuid = $1 and record = $2 for update
      ), saved as (
        update rdns_record r set forward_due_at = now() + make_interval(secs => $4),
          forward_confirmed = coalesce($3::bool, r.forward_confirmed)
        from old where r.uuid = old.uuid
        returning r.uuid, r.forward_confirmed is distinct from old.forward_confirmed as changed
      ), logged as (
        insert into change (kind, object_uuid) select 'rdns', uuid from saved where changed returning 1
      )
      select count(*) as count from logged`,
    values: [uuid, record, confirmed ?? null, again],
  });
  return (rows[0]?.count ?? 0) > 0;
}
