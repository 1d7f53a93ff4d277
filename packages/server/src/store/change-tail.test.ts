import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type ChangeEntry, type ChangesSince, changesSince, pruneChanges } from './change-log.ts';
import { type ChangeTail, startChangeTail, type TailSubscriber } from './change-tail.ts';
import { type Cursor, compareCursors, formatCursor } from './cursor.ts';
import type { Database } from './database.ts';
import { type SeededChange, seedDeletion, seedPriority, seedProvider, seedRule } from './testing/seed.ts';
import { startTestPostgres, type TestPostgres } from './testing/test-postgres.ts';
import { waitUntil } from './testing/wait-until.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startTestPostgres();
});
after(() => postgres?.stop());

/** What a router would hold that takes whatever it is handed. */
class Follower implements TailSubscriber {
  readonly entries: ChangeEntry[] = [];
  readonly priorities = new Map<string, number>();
  cursor: Cursor = { xid: 0, position: 0 };
  gaps = 0;

  changes(changes: ChangesSince): void {
    this.entries.push(...changes.entries);
    this.cursor = changes.cursor;
    for (const uuid of changes.remove) this.priorities.delete(uuid);
    for (const [uuid, rule] of changes.upsert) this.priorities.set(uuid, JSON.parse(rule.fields).priority);
  }

  gap(): void {
    this.gaps++;
  }
}

async function logOf(database: Database): Promise<string[]> {
  const { rows } = await database.pool.query('select c.xid::text, c.position from change c order by c.xid, c.position');
  return rows.map((row) => `${row.xid}.${row.position}`);
}

async function presentOf(database: Database): Promise<[string, number][]> {
  const { rows } = await database.pool.query(
    `select uuid::text, (fields->>'priority')::int as priority from firewall_rule where deletion_marked_at is null`,
  );
  return rows.map((row) => [row.uuid, row.priority] as [string, number]).sort();
}

async function withTails(
  count: number,
  work: (database: Database, tails: ChangeTail[]) => Promise<void>,
): Promise<void> {
  const database = await postgres.createDatabase({ maxConnections: 16 });
  const tails: ChangeTail[] = [];
  try {
    for (let i = 0; i < count; i++) tails.push(await startChangeTail(postgres.openAgain(database)));
    await work(database, tails);
  } finally {
    await Promise.all(tails.map((tail) => tail.stop()));
  }
}

/** The entries of its own addresses lie behind the tails when it resolves. */
async function seedHolder(database: Database, ...tails: readonly (ChangeTail | undefined)[]) {
  const provider = await seedProvider(database.pool);
  const end = (await logOf(database)).at(-1);
  for (const tail of tails) {
    tail?.wake();
    await waitUntil(() => tail === undefined || formatCursor(tail.cursor) === end, 'the addresses');
  }
  return provider;
}

/** Deterministic, so that a failure can be run again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('every tail hands out every committed change once and in order, however late it commits', async () => {
  await withTails(3, async (database, tails) => {
    const provider = await seedProvider(database.pool);
    const followers = tails.map((tail) => {
      const follower = new Follower();
      tail.subscribe(follower);
      return follower;
    });
    const rules: string[] = [];
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      const next = random(writer + 1);
      for (let round = 0; round < 15; round++) {
        const client = await database.pool.connect();
        await client.query('begin');
        const made: string[] = [];
        for (let i = 0; i <= next() * 3; i++) {
          // Positions are drawn now; the commit comes after others have drawn, written and committed.
          made.push((await seedRule(client, provider, { priority: 1 + Math.floor(next() * 1000) })).uuid);
          await delay(next() * 4);
        }
        const old = rules[Math.floor(next() * rules.length)];
        if (old !== undefined) {
          if (next() < 0.5) await seedPriority(client, old, 1 + Math.floor(next() * 1000));
          else await seedDeletion(client, old);
        }
        await delay(next() * 20);
        const kept = next() < 0.8;
        await client.query(kept ? 'commit' : 'rollback');
        client.release();
        if (kept) {
          rules.push(...made);
          tails[Math.floor(next() * tails.length)]?.wake();
        }
      }
    });
    await Promise.all(writers);
    const log = await logOf(database);
    assert.ok(log.length > 150, `only ${log.length} changes`);
    // The test is one only if some change was committed after a later position.
    assert.notDeepEqual(
      log,
      log.toSorted((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1])),
    );
    const present = await presentOf(database);
    for (const follower of followers) {
      await waitUntil(() => follower.entries.length >= log.length, 'the whole log');
      assert.deepEqual(follower.entries.map(formatCursor), log);
      assert.deepEqual([...follower.priorities].sort(), present);
    }
  });
});

test('a change waits for an older transaction that is still open, its rule does not', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedHolder(database, tail);
    const follower = new Follower();
    tail?.subscribe(follower);
    const older = await database.pool.connect();
    await older.query('begin');
    const late = await seedRule(older, provider, { priority: 1 });
    const early = await seedRule(database.pool, provider, { priority: 2 });
    tail?.wake();
    await waitUntil(() => follower.priorities.has(early.uuid), 'the state that is committed');
    assert.equal(follower.entries.length, 0);
    await older.query('commit');
    older.release();
    await waitUntil(() => follower.entries.length === 2, 'both changes');
    assert.deepEqual(
      follower.entries.map((entry) => entry.objectUuid),
      [late.uuid, early.uuid],
    );
    assert.equal(follower.priorities.get(late.uuid), 1);
  });
});

test('while an older transaction stays open, what is committed is handed out once, and its cursor afterwards', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedHolder(database, tail);
    const handed: string[] = [];
    const cursors: string[] = [];
    tail?.subscribe({
      changes(changes) {
        handed.push(...changes.upsert.keys());
        cursors.push(formatCursor(changes.cursor));
      },
      gap() {},
    });
    const older = await database.pool.connect();
    await older.query('begin');
    await older.query('select pg_current_xact_id()');
    const rules: SeededChange[] = [];
    for (let i = 0; i < 10; i++) {
      rules.push(await seedRule(database.pool, provider));
      tail?.wake();
      await waitUntil(() => handed.includes(rules[i]?.uuid ?? ''), 'the rule');
    }
    await older.query('rollback');
    older.release();
    const last = `${rules.at(-1)?.change.xid}.${rules.at(-1)?.change.position}`;
    await waitUntil(() => cursors.at(-1) === last, 'the cursor');
    assert.deepEqual(
      handed,
      rules.map((rule) => rule.uuid),
    );
  });
});

test('whoever joins anywhere ends with the present state', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedProvider(database.pool);
    const start = tail?.cursor as Cursor;
    const next = random(99);
    const rules: string[] = [];
    const followers: Follower[] = [];
    let writing = true;
    const writer = (async () => {
      for (let i = 0; i < 300; i++) {
        const old = rules[Math.floor(next() * rules.length)];
        if (old !== undefined && next() < 0.4) await seedPriority(database.pool, old, Math.floor(next() * 1000));
        else if (old !== undefined && next() < 0.2) await seedDeletion(database.pool, old);
        else rules.push((await seedRule(database.pool, provider)).uuid);
        tail?.wake();
      }
      writing = false;
    })();
    const cursors = [start];
    while (writing) {
      const follower = new Follower();
      const cursor = cursors[Math.floor(next() * cursors.length)] as Cursor;
      // What it holds at its cursor: the fold from the start; states newer than the cursor do no harm.
      follower.changes(await changesSince(database.pool, start, 10_000));
      assert.notEqual(await tail?.join(cursor, follower), false);
      followers.push(follower);
      cursors.push(tail?.cursor as Cursor);
      await delay(5);
    }
    await writer;
    const last = (await logOf(database)).at(-1);
    const present = await presentOf(database);
    assert.ok(followers.length > 10);
    for (const follower of followers) {
      await waitUntil(() => formatCursor(follower.cursor) === last, 'the end of the log');
      assert.deepEqual([...follower.priorities].sort(), present);
    }
  });
});

test('a replica is woken by another one, long before it would look by itself', async () => {
  const database = await postgres.createDatabase();
  const other = postgres.openAgain(database);
  const [writer, reader] = [
    await startChangeTail(database, { pollMilliseconds: 60_000 }),
    await startChangeTail(other, { pollMilliseconds: 60_000 }),
  ];
  try {
    const provider = await seedHolder(database, reader, writer);
    const follower = new Follower();
    reader.subscribe(follower);
    for (let i = 1; i <= 5; i++) {
      await seedRule(database.pool, provider);
      writer.wake();
      await waitUntil(() => follower.entries.length === i, `change ${i}`, 5_000);
    }
  } finally {
    await writer.stop();
    await reader.stop();
  }
});

test('a change is found although nobody was told', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedHolder(database, tail);
    const follower = new Follower();
    tail?.subscribe(follower);
    await seedRule(database.pool, provider);
    await waitUntil(() => follower.entries.length === 1, 'the change', 2_000);
  });
});

test('a tail whose connection is cut goes on where it stood', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedProvider(database.pool);
    const follower = new Follower();
    tail?.subscribe(follower);
    for (let round = 0; round < 5; round++) {
      await database.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'levee change tail' and datname = current_database()`,
      );
      await seedRule(database.pool, provider);
    }
    const log = await logOf(database);
    await waitUntil(() => follower.entries.length === log.length, 'everything');
    assert.deepEqual(follower.entries.map(formatCursor), log);
    assert.equal(follower.gaps, 0);
  });
});

test('pruning raises the floor: who stands at it goes on, who stands before it is refused', async () => {
  await withTails(1, async (database, [tail]) => {
    const provider = await seedHolder(database, tail);
    const before_ = tail?.cursor as Cursor;
    for (let i = 0; i < 5; i++) await seedRule(database.pool, provider);
    const atFloor = (await changesSince(database.pool, before_, 100)).cursor;
    await waitUntil(() => tail !== undefined && compareCursors(tail.cursor, atFloor) === 0, 'the tail is at the end');
    assert.equal(await pruneChanges(database.pool, 3600), 0);
    // With the entry of the provider's addresses.
    assert.equal(await pruneChanges(database.pool, 0), 6);
    const kept = await seedRule(database.pool, provider);
    assert.equal(await tail?.join(before_, new Follower()), false);
    const follower = new Follower();
    assert.notEqual(await tail?.join(atFloor, follower), false);
    await waitUntil(() => follower.priorities.has(kept.uuid), 'the change after the floor');
    assert.equal(follower.entries.length, 1);
  });
});

test('pruning by three replicas at once loses nothing that is young', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  for (let i = 0; i < 30; i++) await seedRule(database.pool, provider);
  await database.pool.query(
    `update change set at = now() - interval '2 hours'
      where position % 3 <> 0 and position < (select max(position) from change)`,
  );
  const pruned = await Promise.all([1, 2, 3].map(() => pruneChanges(database.pool, 3600)));
  const { rows } = await database.pool.query(
    `select count(*) as left, bool_and((c.xid, c.position) > (f.xid, f.position)) as above
      from change c, change_floor f`,
  );
  // With the entry of the provider's addresses.
  assert.equal(pruned.reduce((sum, count) => sum + count) + rows[0].left, 31);
  assert.equal(rows[0].above, true);
});

test('a cursor from another database is refused, not believed', async () => {
  await withTails(1, async (_, [tail]) => {
    assert.equal(await tail?.join({ xid: 2 ** 45, position: 7 }, new Follower()), false);
  });
});

test('a transaction is never torn apart, however many changes it holds', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const start = (await changesSince(database.pool, { xid: 0, position: 0 }, 10)).cursor;
  const client = await database.pool.connect();
  await client.query('begin');
  for (let i = 0; i < 30; i++) await seedRule(client, provider);
  await client.query('commit');
  client.release();
  await seedRule(database.pool, provider);
  const first = await changesSince(database.pool, start, 10);
  assert.equal(first.entries.length, 30);
  assert.equal(first.complete, false);
  const second = await changesSince(database.pool, first.cursor, 10);
  assert.equal(second.entries.length, 1);
  assert.ok(compareCursors(second.cursor, first.cursor) > 0);
});

/** So many deletions logged at once: of rules that never were, which is all that a reader needs to count them. */
async function logMany(database: Database, count: number): Promise<void> {
  await database.pool.query(
    `insert into change (kind, object_uuid) select 'firewall_rule', gen_random_uuid() from generate_series(1, $1)`,
    [count],
  );
}

test('a transaction that stays open hides nothing behind it, however much follows, and is named in a warning', async () => {
  const database = await postgres.createDatabase();
  const provider = await seedProvider(database.pool);
  const earlier = (await logOf(database)).length;
  const warnings: string[] = [];
  const tail = await startChangeTail(database, { warnMilliseconds: 50, warn: (text) => warnings.push(text) });
  const holder = await database.connect('a forgotten session');
  try {
    const [follower, late] = [new Follower(), new Follower()];
    const begin = tail.cursor;
    tail.subscribe(follower);
    await holder.query('begin');
    const held = await seedRule(holder, provider);
    for (let i = 0; i < 6; i++) await logMany(database, 1_000);
    await logMany(database, 6_000);
    const rule = await seedRule(database.pool, provider);
    tail.wake();
    await waitUntil(() => follower.priorities.has(rule.uuid), 'the rule behind twelve thousand unsettled entries');
    const leave = await tail.join(begin, late);
    assert.notEqual(leave, false);
    assert.ok(late.priorities.has(rule.uuid));
    assert.equal(follower.entries.length, 0);
    await waitUntil(() => warnings.length > 0, 'the warning');
    assert.match(warnings[0] ?? '', /a forgotten session/);
    const another = await seedRule(database.pool, provider);
    tail.wake();
    await waitUntil(() => follower.priorities.has(another.uuid) && late.priorities.has(another.uuid), 'another one');

    await holder.query('commit');
    const log = (await logOf(database)).slice(earlier);
    await waitUntil(() => follower.entries.length === log.length, 'the settling');
    assert.deepEqual(follower.entries.map(formatCursor), log);
    assert.ok(follower.priorities.has(held.uuid));
  } finally {
    await holder.end();
    await tail.stop();
    await database.close();
  }
});
