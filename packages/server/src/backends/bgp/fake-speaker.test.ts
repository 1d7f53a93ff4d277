import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeSpeaker } from './testing/fake-speaker.ts';
import { holdToContract } from './testing/speaker-contract.ts';

test('the fake keeps to what every speaker keeps to, and its session ends when it does', async () => {
  const speaker = createFakeSpeaker();
  const session = await holdToContract(speaker);
  speaker.crash();
  assert.match(await session.ended, /gone/);
  const again = await session.list();
  assert.equal(again.ok, false);
});
