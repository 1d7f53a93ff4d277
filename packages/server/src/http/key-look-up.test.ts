import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import type pg from 'pg';
import { createKeyLookUp } from './key-look-up.ts';

const digestOf = (name: string) => hash('sha256', name, 'base64url');

/** A database that answers when it is told to, and knows the keys whose names are given. */
function database(...known: readonly string[]) {
  const asked: { readonly digests: readonly string[]; answer(): void; fail(): void }[] = [];
  const query = ({ values: [hashes] }: { values: [readonly Buffer[]] }) =>
    new Promise((resolve, reject) => {
      const digests = hashes.map((each) => each.toString('base64url'));
      const rows = known
        .filter((name) => digests.includes(digestOf(name)))
        .map((uuid) => ({ uuid, hash: Buffer.from(digestOf(uuid), 'base64url') }));
      asked.push({ digests, answer: () => resolve({ rows }), fail: () => reject(new Error('away')) });
    });
  return { lookUp: createKeyLookUp({ query } as unknown as pg.Pool), asked };
}

/** Until nothing waits any more. */
async function answerAll(asked: readonly { answer(): void }[]): Promise<void> {
  for (let answered = 0; answered < asked.length; answered++) {
    asked[answered]?.answer();
    await turn();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('however many keys are sent, the database sees two statements at a time, of 200 keys at most', async () => {
  const { lookUp, asked } = database('key 700');
  const found = Array.from({ length: 1000 }, (_, index) => lookUp(digestOf(`key ${index}`), 'one source'));
  for (let answered = 0; answered < asked.length; answered++) {
    assert.ok(asked.length - answered <= 2);
    assert.ok((asked[answered]?.digests.length ?? 0) <= 200);
    asked[answered]?.answer();
    await turn();
  }
  assert.ok(asked.length <= 8, `${asked.length} statements`);
  const uuids = (await Promise.all(found)).map((row) => row?.uuid);
  assert.deepEqual([uuids[700], uuids.filter((uuid) => uuid !== undefined).length], ['key 700', 1]);
});

test('a key of another lane is in the next statement, however many of one lane wait', async () => {
  const { lookUp, asked } = database('good');
  for (let index = 0; index < 5000; index++) void lookUp(digestOf(`guess ${index}`), 'guesser');
  const good = lookUp(digestOf('good'), 'elsewhere');
  asked[0]?.answer();
  await turn();
  assert.ok(asked[2]?.digests.includes(digestOf('good')));
  asked[2]?.answer();
  assert.equal((await good)?.uuid, 'good');
  await answerAll(asked);
});

test('statements that get no answer hold up no others for long', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { lookUp, asked } = database('third');
  for (const name of ['first', 'second']) void lookUp(digestOf(name), name);
  const third = lookUp(digestOf('third'), 'third');
  context.mock.timers.tick(999);
  assert.equal(asked.length, 2);
  context.mock.timers.tick(1);
  asked[2]?.answer();
  assert.equal((await third)?.uuid, 'third');
});

test('a statement that fails fails its own keys alone', async () => {
  const { lookUp, asked } = database('third');
  const [first, second, third] = ['first', 'second', 'third'].map((name) => lookUp(digestOf(name), 'source'));
  asked[0]?.fail();
  asked[1]?.answer();
  await assert.rejects(first as Promise<unknown>, /away/);
  assert.equal(await second, undefined);
  await turn();
  asked[2]?.answer();
  assert.equal((await third)?.uuid, 'third');
});
