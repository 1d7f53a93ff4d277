import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { enterOwnNamespace } from '../../testing/own-namespace.ts';
import { until } from '../../testing/until.ts';
import { type EchoAnswer, openEchoSocket } from './echo-socket.ts';

const skip = enterOwnNamespace() ?? false;
const payload = Buffer.from('sixteen octets..');

/** A new namespace opens ping sockets to nobody. */
for (const [way, groups] of [
  ['a raw socket', '1 0'],
  ['a ping socket', '0 2147483647'],
] as const) {
  for (const [family, address] of [
    [4, '127.0.0.1'],
    [6, '::1'],
  ] as const) {
    test(`${way} of IPv${family} brings each answer once, with the kernel’s time of arrival`, { skip }, async (t) => {
      writeFileSync('/proc/sys/net/ipv4/ping_group_range', groups);
      const socket = openEchoSocket(family);
      t.after(() => socket.close());
      const sent = [1, 2, 0xffff].map((sequence) => socket.send(address, { sequence, payload }));
      // Long after they have come: what counts is when the kernel had them.
      const answers: EchoAnswer[] = [];
      const late = performance.now() + 50;
      await until('they have lain there for a while', () => performance.now() > late);
      await until('all are back', () => {
        answers.push(...socket.receive());
        return answers.length >= 3;
      });
      assert.deepEqual(
        answers.map(({ at, ...answer }) => answer),
        [1, 2, 0xffff].map((sequence) => ({ sequence, payload, from: address })),
      );
      answers.forEach(({ at }, index) => {
        const taken = at - (sent[index] ?? 0);
        assert.ok(taken >= 0 && taken < 40, `${taken} ms`);
      });
      assert.deepEqual(socket.receive(), []);
    });
  }
}

test('what has no way is told at once, and the socket goes on', { skip }, async (t) => {
  const socket = openEchoSocket(4);
  t.after(() => socket.close());
  assert.equal(socket.send('192.0.2.1', { sequence: 1, payload }), undefined);
  assert.notEqual(socket.send('127.0.0.1', { sequence: 2, payload }), undefined);
  await until('the second is back', () => socket.receive().length === 1);
});
