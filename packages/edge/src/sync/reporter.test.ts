import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentHit } from '@levee/contract/agent.ts';
import { parseEndpoints } from '@levee/follow/endpoint.ts';
import { pino } from 'pino';
import { startControlPlane, type TestControlPlane } from '../testing/control-plane.ts';
import { createReporter } from './reporter.ts';

const hit = (uuid: string, packets: number): AgentHit => ({
  uuid,
  packets,
  bytes: packets * 100,
  last_hit_at: '2026-01-01T00:00:00.000Z',
});

async function setUp(t: TestContext) {
  const controlPlane: TestControlPlane = await startControlPlane();
  const state = {
    applied: undefined as string | undefined,
    resumes: undefined as string | undefined,
    waitsForTunnels: false,
    failures: [] as { uuid: string; reason: string }[],
    capabilities: [] as string[],
  };
  const reporter = createReporter({
    endpoints: parseEndpoints([controlPlane.address]),
    key: controlPlane.key,
    run: '00000000-0000-4000-8000-000000000000',
    reconnectMilliseconds: 20,
    answerMilliseconds: 1_000,
    logger: pino({ level: 'silent' }),
    keyAlarm: () => undefined,
    applied: () => state.applied,
    resumes: () => state.resumes,
    waitsForTunnels: () => state.waitsForTunnels,
    enforcement: () => ({ mode: 'kernel' }),
    capabilities: () => state.capabilities,
    failures: () => state.failures,
  });
  t.after(async () => {
    await reporter.stop(0);
    await controlPlane.close();
  });
  return { controlPlane, reporter, state };
}

test('an acknowledgement carries cursor, enforcement and every failure', async (t) => {
  const { controlPlane, reporter, state } = await setUp(t);
  state.applied = '1.7';
  state.failures = [{ uuid: 'a', reason: 'no' }];
  reporter.acknowledge();
  await reporter.idle();
  assert.deepEqual(controlPlane.reports, [
    { cursor: '1.7', enforcement: { mode: 'kernel' }, failures: [{ uuid: 'a', reason: 'no' }] },
  ]);
});

test('what stands from before is told as long as nothing can be acknowledged, and what is waited for', async (t) => {
  const { controlPlane, reporter, state } = await setUp(t);
  const enforced = { enforcement: { mode: 'kernel' as const }, failures: [] };
  Object.assign(state, { resumes: '1.7', waitsForTunnels: true });
  reporter.acknowledge();
  await reporter.idle();
  Object.assign(state, { applied: '1.8', waitsForTunnels: false });
  reporter.acknowledge();
  await reporter.idle();
  assert.deepEqual(controlPlane.reports, [
    { resumes: '1.7', waits_for: 'tunnels', ...enforced },
    { cursor: '1.8', ...enforced },
  ]);
});

test('capabilities stand in every report, and are left out when there are none', async (t) => {
  const { controlPlane, reporter, state } = await setUp(t);
  reporter.acknowledge();
  await reporter.idle();
  state.capabilities = ['filter:22', 'tunnel:GRE'];
  reporter.acknowledge();
  await reporter.idle();
  reporter.account([], [], {});
  await reporter.idle();
  assert.deepEqual(
    controlPlane.reports.map(({ capabilities }) => capabilities),
    [undefined, ['filter:22', 'tunnel:GRE'], ['filter:22', 'tunnel:GRE']],
  );
});

test('probes are sent until they are taken, of each tunnel the last ones, and then no more', async (t) => {
  const { controlPlane, reporter } = await setUp(t);
  await controlPlane.cut();
  reporter.account(
    [],
    [
      { uuid: 'a', sent: 1, received: 0 },
      { uuid: 'b', sent: 1, received: 1 },
    ],
    {},
  );
  reporter.account([], [{ uuid: 'a', sent: 1, received: 1 }], {});
  await controlPlane.restore();
  await reporter.idle();
  reporter.account([], [], {});
  await reporter.idle();
  const probes = controlPlane.reports.map((report) => report.probes);
  assert.deepEqual(probes.filter(Boolean), [
    [
      { uuid: 'a', sent: 1, received: 1 },
      { uuid: 'b', sent: 1, received: 1 },
    ],
  ]);
  assert.equal(probes.at(-1), undefined);
});

test('acknowledgements that come while one is under way become one', async (t) => {
  const { controlPlane, reporter, state } = await setUp(t);
  for (let n = 1; n <= 100; n++) {
    state.applied = `1.${n}`;
    reporter.acknowledge();
  }
  await reporter.idle();
  assert.equal(controlPlane.acknowledged, 100);
  assert.ok(controlPlane.reports.length <= 2, `${controlPlane.reports.length} reports`);
});

test('counters whose answer was lost are sent again under the same number, and counted once', async (t) => {
  const { controlPlane, reporter } = await setUp(t);
  controlPlane.loseAnswers(3);
  reporter.account([hit('a', 5)], [], {});
  reporter.account([hit('a', 1), hit('b', 2)], [], {});
  await reporter.idle();
  assert.equal(controlPlane.hits.get('a')?.packets, 6);
  assert.equal(controlPlane.hits.get('b')?.packets, 2);
  const numbers = controlPlane.reports.flatMap((report) => report.counters?.number ?? []);
  assert.deepEqual([...new Set(numbers)], [1, 2]);
  assert.ok(numbers.filter((number) => number === 1).length > 1, 'the first was repeated');
});

test('what was counted while the control plane was away arrives once it is back', async (t) => {
  const { controlPlane, reporter } = await setUp(t);
  await controlPlane.cut();
  for (let n = 0; n < 10; n++) reporter.account([hit('a', 1)], [], { n });
  await controlPlane.restore();
  await reporter.idle();
  assert.equal(controlPlane.hits.get('a')?.packets, 10);
  assert.deepEqual(controlPlane.reports.at(-1)?.status ?? controlPlane.reports.at(-2)?.status, { n: 9 });
});

test('a period without hits sends no counters', async (t) => {
  const { controlPlane, reporter } = await setUp(t);
  reporter.account([], [], { fine: true });
  await reporter.idle();
  assert.equal(controlPlane.reports[0]?.counters, undefined);
  assert.deepEqual(controlPlane.reports[0]?.status, { fine: true });
});

test('stopping with nobody there ends within its grace', async (t) => {
  const { controlPlane, reporter } = await setUp(t);
  await controlPlane.cut();
  reporter.acknowledge();
  const began = performance.now();
  await reporter.stop(50);
  assert.ok(performance.now() - began < 1_000);
});
