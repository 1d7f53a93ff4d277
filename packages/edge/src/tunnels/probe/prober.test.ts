import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { tunnelOf } from '../../testing/tunnels.ts';
import { readTunnel, type WantedDevice } from '../wanted-device.ts';
import type { EchoAnswer } from './echo-socket.ts';
import { createProber } from './prober.ts';

const started = Date.parse('2026-01-02T03:04:05Z');

function setUp(t: TestContext, sockets: { fail?: boolean } = {}) {
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: started });
  t.after(() => mock.timers.reset());
  const sent: { address: string; sequence: number; payload: Buffer }[] = [];
  const answers: EchoAnswer[] = [];
  let unreachable = '';
  const prober = createProber({
    intervalMilliseconds: 10_000,
    patienceMilliseconds: 3_000,
    tickMilliseconds: 100,
    now: () => Date.now(),
    openSocket(family) {
      if (sockets.fail) throw new Error('no ICMP socket (errno 13)');
      return {
        send(address, { sequence, payload }) {
          if (address === unreachable) return undefined;
          sent.push({ address, sequence, payload });
          return Date.now();
        },
        receive: () => answers.splice(0).filter(({ from }) => from.includes(':') === (family === 6)),
        close: () => undefined,
      };
    },
  });
  t.after(() => prober.stop());
  return {
    prober,
    sent,
    /** Tick by tick: a mocked clock shows each callback the end of what is passed. */
    pass(milliseconds: number) {
      for (let at = 0; at < milliseconds; at += 100) mock.timers.tick(100);
    },
    answer(milliseconds: number, index = -1, change: Partial<EchoAnswer> = {}) {
      const { address, sequence, payload } = sent.at(index) as (typeof sent)[number];
      answers.push({ from: address, sequence, payload, at: Date.now() + milliseconds, ...change });
    },
    lose(address: string) {
      unreachable = address;
    },
  };
}

function devicesOf(...tunnels: AgentTunnel[]): WantedDevice[] {
  return tunnels.flatMap((tunnel) => {
    const read = readTunnel(tunnel);
    return read.ok ? [read.device] : [];
  });
}

const one = tunnelOf(1);

test('each tunnel is asked once an interval, at a time of its own', (t) => {
  const { prober, sent, pass } = setUp(t);
  prober.set(devicesOf(...Array.from({ length: 200 }, (_, n) => tunnelOf(n + 1, { inner_ipv4: `10.0.${n}.0/31` }))));
  const each: number[] = [];
  for (let second = 0; second < 10; second++) {
    pass(1_000);
    each.push(sent.splice(0).length);
  }
  assert.equal(
    each.reduce((sum, count) => sum + count),
    200,
  );
  assert.ok(Math.max(...each) < 60, `${each}`);
  pass(10_000);
  assert.equal(new Set(sent.map(({ address }) => address)).size, 200);
  assert.equal(sent.length, 200);
});

test('answers are added up until they are taken; the last one’s time stays', (t) => {
  const { prober, sent, pass, answer } = setUp(t);
  prober.set(devicesOf(one));
  for (const [times, taken] of [4, 1.25, 2.5].entries()) {
    while (sent.length === times) pass(100);
    answer(taken);
    pass(100);
  }
  const [probe] = prober.take();
  assert.deepEqual(
    [probe?.uuid, probe?.sent, probe?.received, probe?.rtt_ms],
    [one.uuid, 3, 3, { min: 1.25, avg: 2.583, max: 4 }],
  );
  assert.deepEqual(prober.take(), []);
  pass(20_000);
  const [silent] = prober.take();
  assert.deepEqual(
    { ...silent, sent: (silent?.sent ?? 0) > 0 },
    {
      uuid: one.uuid,
      sent: true,
      received: 0,
      last_answer_at: probe?.last_answer_at,
    },
  );
});

test('a request counts as lost after three seconds, or at once when the kernel does not take it', (t) => {
  const { prober, sent, pass, answer, lose } = setUp(t);
  prober.set(devicesOf(one));
  while (sent.length === 0) pass(100);
  pass(2_900);
  assert.deepEqual(prober.take(), []);
  pass(200);
  assert.deepEqual(prober.take(), [{ uuid: one.uuid, sent: 1, received: 0 }]);
  answer(1);
  pass(200);
  assert.deepEqual(prober.take(), [], 'an answer that comes later counts for nothing');
  lose(sent[0]?.address ?? '');
  pass(10_000);
  assert.deepEqual(prober.take(), [{ uuid: one.uuid, sent: 1, received: 0 }]);
});

test('only our own answers from the address that was asked count, and each once', (t) => {
  const { prober, sent, pass, answer } = setUp(t);
  prober.set(devicesOf(one));
  while (sent.length === 0) pass(100);
  answer(1, 0, { from: '10.255.1.9' });
  answer(1, 0, { payload: Buffer.from('another program.') });
  answer(1, 0, { sequence: 4000 });
  answer(1, 0);
  answer(1, 0);
  pass(100);
  assert.deepEqual(
    prober.take().map(({ sent: asked, received }) => [asked, received]),
    [[1, 1]],
  );
});

test('the customer is asked over IPv4 unless IPv6 alone is routed', (t) => {
  const { prober, sent, pass } = setUp(t);
  prober.set(
    devicesOf(one, tunnelOf(2, { ips: ['2001:db8::/48', '192.0.2.0/24'] }), tunnelOf(3, { ips: ['2001:db8::/48'] })),
  );
  pass(10_000);
  assert.deepEqual([...new Set(sent.map(({ address }) => address))].sort(), [
    '10.255.1.1',
    '10.255.2.1',
    'fd00:0:0:3::1',
  ]);
});

test('a tunnel that is gone is asked no more, one that stays keeps its sums', (t) => {
  const { prober, sent, pass, answer } = setUp(t);
  const two = tunnelOf(2);
  prober.set(devicesOf(one, two));
  pass(10_000);
  answer(1, -1);
  pass(100);
  prober.set(devicesOf(two));
  prober.set(devicesOf(two));
  assert.deepEqual(
    prober
      .take()
      .map(({ uuid }) => uuid)
      .filter((uuid) => uuid === one.uuid),
    [],
  );
  sent.length = 0;
  pass(30_000);
  assert.deepEqual([...new Set(sent.map(({ address }) => address))], ['10.255.2.1']);
  prober.set([]);
  sent.length = 0;
  pass(30_000);
  assert.deepEqual(sent, []);
});

test('without a socket nothing is asked, and the status says why', (t) => {
  const { prober, pass } = setUp(t, { fail: true });
  prober.set(devicesOf(one));
  pass(20_000);
  assert.deepEqual([prober.take(), prober.status()], [[], { probes: 'none: no ICMP socket (errno 13)' }]);
});
