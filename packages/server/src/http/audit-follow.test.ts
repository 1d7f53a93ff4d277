import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { waitUntil } from '../store/testing/wait-until.ts';
import { type ApiFixture, type Holder, type Reply, request, startApi } from './testing/api-fixture.ts';

let api: ApiFixture;
let provider: Holder;

before(async () => {
  api = await startApi();
  provider = await api.provider(['203.0.113.0/24']);
});
after(() => api.stop());

interface Entry {
  readonly sequence: number;
  readonly at: string;
}

const audit = async (url: string, query: string): Promise<readonly Entry[]> => {
  const reply: Reply = await request(url, 'GET', `/v1/audit?${query}`, { key: provider.key });
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};

/** What whoever asks on has seen, and how it goes on from the last entry that it was given. */
function follower(queryAfter: (last: Entry) => string) {
  const seen = new Set<number>();
  let query = '';
  return {
    /** In the order in which they came. */
    seen,
    async poll(url: string) {
      for (const entry of await audit(url, query)) {
        seen.add(entry.sequence);
        query = queryAfter(entry);
      }
    },
  };
}

const followers = {
  after: () => follower(({ sequence }) => `limit=100&after=${sequence}`),
  since: () => follower(({ at }) => `since=${at}`),
};

const insert = `insert into audit (operation, kind, object_uuid, owner_uuid, provider_uuid)
  values ('expire', 'filter', gen_random_uuid(), $1, $1)`;

for (const [name, make] of Object.entries(followers)) {
  test(`whoever follows the log by \`${name}\` gets every entry, also one of a transaction that ends late`, async () => {
    const { poll, seen } = make();
    const late = await api.database.pool.connect();
    try {
      await poll(api.url);
      await late.query('begin');
      await late.query(insert, [provider.uuid]);
      await api.database.pool.query(insert, [provider.uuid]);
      await poll(api.url);
      await late.query('commit');
    } finally {
      late.release();
    }
    await api.database.pool.query(insert, [provider.uuid]);
    await poll(api.url);
    await poll(api.url);
    const whole = (await audit(api.url, '')).map(({ sequence }) => sequence);
    assert.deepEqual([...seen], whole);
  });
}

test('while two replicas write, in transactions of any length, followers of both miss nothing and see one order', async () => {
  const replica = await api.openReplica();
  const urls = [api.url, replica.url];
  let writing = true;
  const writer = async (index: number) => {
    const url = urls[index % 2] ?? '';
    for (let made = 0; made < 25; made++) {
      const body = { dst: `203.0.113.${index}`, protocol: 'udp', action: 'drop' };
      const headers: Record<string, string> = made % 2 === 0 ? { 'idempotency-key': `w${index}-${made}` } : {};
      const reply = await request(url, 'POST', '/v1/firewall/rule', { key: provider.key, body, headers });
      assert.equal(reply.status, 200, reply.text);
    }
  };
  /** Holds its entry back until others have been written after it. */
  const straggler = async () => {
    const client = await api.database.pool.connect();
    try {
      for (let made = 0; made < 10; made++) {
        await client.query('begin');
        await client.query(insert, [provider.uuid]);
        const { rows } = await client.query('select last_value as at from pg_sequences where sequencename like $1', [
          'audit_%',
        ]);
        await waitUntil(async () => {
          const now = await client.query('select last_value as at from pg_sequences where sequencename like $1', [
            'audit_%',
          ]);
          return !writing || now.rows[0].at > rows[0].at + 5;
        }, 'others to write');
        await client.query('commit');
      }
    } finally {
      client.release();
    }
  };
  const following = Object.values(followers).map((make) => make());
  const polling = Promise.all(
    following.map(async ({ poll }, index) => {
      for (let at = index; writing; at++) await poll(urls[at % 2] ?? '');
    }),
  );
  try {
    const writers = Promise.all([1, 2, 3, 4].map(writer)).finally(() => {
      writing = false;
    });
    await Promise.all([writers, straggler()]);
    await polling;
    const whole = (await audit(api.url, '')).map(({ sequence }) => sequence);
    for (const { poll, seen } of following) {
      for (let size = -1; size !== seen.size; ) {
        size = seen.size;
        await poll(replica.url);
      }
      assert.deepEqual([...seen], whole);
    }
  } finally {
    writing = false;
    await polling.catch(() => {});
    await replica.close();
  }
});
