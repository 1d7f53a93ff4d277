import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Operation } from '@levee/contract/operation.ts';
import { type ApiFixture, type Reply, startApi } from './testing/api-fixture.ts';
import { type CallerName, type Row, type Rows, targets } from './testing/matrix.ts';
import { matrixRows } from './testing/matrix-rows.ts';
import { buildWorld, type HolderName, type World } from './testing/world.ts';

let api: ApiFixture;
let world: World;

before(async () => {
  api = await startApi();
  world = await buildWorld(api);
  let made = 0;
  rows = matrixRows({ api, world, next: () => ++made });
});
after(() => api.stop());

let rows: Rows = {};
function keyOf(caller: CallerName): string {
  return caller === 'operator' ? api.operatorKey : world.holders[caller].key;
}

/** The 404 of another's object and of one that never was are one and the same. */
function withoutRequestId(reply: Reply): object {
  return { ...reply.body, request_id: undefined };
}

test('every served operation has a row in the matrix', () => {
  const served = api.api.operations.map((operation) => operation.id).sort();
  assert.deepEqual(Object.keys(rows).sort(), served);
});

test('every role gets what it may have of every account, and nothing else', async (context) => {
  let cells = 0;
  for (const operation of api.api.operations) {
    const row = rows[operation.id];
    assert.ok(row, operation.id);
    for (const caller of ['operator', 'provider', 'user'] as const) {
      await context.test(`${operation.id} by ${caller}`, async () => {
        for (const target of targets) {
          await judge(operation, row, caller, target);
          cells++;
        }
      });
    }
  }
  assert.equal(cells, api.api.operations.length * 3 * targets.length);
});

async function judge(operation: Operation, row: Row, caller: CallerName, target: HolderName): Promise<void> {
  const reply = await row.send(keyOf(caller), target);
  const where = `${operation.id} by ${caller} on ${target}'s: ${reply.text.slice(0, 400)}`;
  if (!operation.roles.includes(caller)) {
    assert.equal(reply.status, 403, where);
    assert.equal(reply.body.error, operation.roleError, where);
    return;
  }
  assert.equal(reply.status, row.expect(caller, target), where);
  if (reply.status === 200) row.check?.(reply, caller, target);
  if (reply.status === 403) assert.equal(reply.body.error, 'ip_not_allowed', where);
  if (reply.status === 404 && operation.params !== undefined) {
    const [name = ''] = Object.keys(operation.params.properties);
    const besides = {
      ...(operation.method !== 'GET' && operation.example?.body !== undefined && { body: operation.example.body }),
      ...(row.query !== undefined && { query: row.query }),
    };
    const missing = '0190a5d0-0000-7000-8000-000000000000';
    const never = await api.call(operation.id, { [name]: missing }, { key: keyOf(caller), ...besides });
    assert.deepEqual(withoutRequestId(reply), withoutRequestId(never), where);
    const malformed = await api.call(operation.id, { [name]: 'not-a-uuid' }, { key: keyOf(caller), ...besides });
    assert.deepEqual(withoutRequestId(reply), withoutRequestId(malformed), where);
  }
}
