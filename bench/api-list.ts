/**
 * GET /provider/firewall/rule at 1 k, 10 k and 100 k rules: time to the first byte, objects a second, memory above idle.
 * The rival is the database alone: psql copying the same rows' stored fields out. Targets at 100 k: first byte within
 * 50 ms, at least 60 000 objects/s, at most 64 MB above idle.
 */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { makeUser, startMeasured } from './api/measured-server.ts';

const sizes = [1_000, 10_000, 100_000];
const server = await startMeasured();
const { providerKey, userUuid } = await makeUser(server);
const { socketDirectory, user, database } = server.database;
const client = new pg.Client({ host: socketDirectory.replace('/self/', `/${server.process.pid}/`), user, database });
await client.connect();

interface Listed {
  readonly firstByteMilliseconds: number;
  readonly seconds: number;
  readonly bytes: number;
  readonly peakBytes: number;
}

async function list(idleBytes: number): Promise<Listed> {
  let peakBytes = idleBytes;
  let reading = true;
  const watching = (async () => {
    while (reading) {
      peakBytes = Math.max(peakBytes, await server.memory(false));
      await delay(20);
    }
  })();
  const begin = performance.now();
  const result = await new Promise<Omit<Listed, 'peakBytes'>>((resolve, reject) => {
    let firstByteMilliseconds = 0;
    let bytes = 0;
    const url = `${server.url}/v1/provider/firewall/rule`;
    request(url, { headers: { 'x-api-key': providerKey } }, (incoming) => {
      incoming.on('data', (part: Buffer) => {
        if (bytes === 0) firstByteMilliseconds = performance.now() - begin;
        bytes += part.length;
      });
      incoming.on('end', () => resolve({ firstByteMilliseconds, seconds: (performance.now() - begin) / 1000, bytes }));
      incoming.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
  reading = false;
  await watching;
  return { ...result, peakBytes };
}

const table = [];
let met = true;
let present = 0;
for (const size of sizes) {
  await client.query(
    `insert into firewall_rule (uuid, sequence, owner_uuid, provider_uuid, subnet, dst, fields, created_at, updated_at, change_position)
      select gen_random_uuid(), position, $1, subnet.provider_uuid, subnet.subnet, '10.1.2.3',
        '{"dst":"10.1.2.3","protocol":"udp","action":"drop","priority":1000,"port":{"dst":{"start":53}},"disabled":false}',
        now(), now(), position
      from subnet, lateral (select nextval('change_position') as position, subnet.subnet as held from generate_series(1, $2::int)) drawn
      where account_uuid = $1`,
    [userUuid, size - present],
  );
  present = size;
  await client.query('vacuum analyze firewall_rule');
  await list(0);
  const idle = await server.memory(true);
  const runs: Listed[] = [];
  for (let run = 0; run < 3; run++) runs.push(await list(idle));
  const begin = performance.now();
  await client.query(
    'select uuid, owner_uuid, fields::text, created_at, updated_at from firewall_rule order by sequence',
  );
  const alone = size / ((performance.now() - begin) / 1000);
  const best = runs.toSorted((a, b) => a.seconds - b.seconds)[0] as Listed;
  const rate = size / best.seconds;
  const firstByte = Math.min(...runs.map((run) => run.firstByteMilliseconds));
  const above = (Math.max(...runs.map((run) => run.peakBytes)) - idle) / 1e6;
  table.push({
    rules: size,
    'first byte ms': firstByte.toFixed(1),
    'objects/s': Math.round(rate),
    'MB above idle': above.toFixed(1),
    'bare select objects/s': Math.round(alone),
    ratio: (rate / alone).toFixed(2),
  });
  if (size === 100_000) met = firstByte <= 50 && rate >= 60_000 && above <= 64;
}
await client.end();
await server.stop();
console.table(table);
console.log(`targets at 100 k (first byte ≤ 50 ms, ≥ 60 000 objects/s, ≤ 64 MB above idle): ${met ? 'met' : 'MISSED'}`);
