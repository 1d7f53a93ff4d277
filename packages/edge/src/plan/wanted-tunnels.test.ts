import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { uuidOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';
import { createFakeTunnels } from '../tunnels/fake.ts';
import { createWantedTunnels } from './wanted-tunnels.ts';

const mapOf = (...tunnels: AgentTunnel[]): Map<string, AgentTunnel> =>
  new Map(tunnels.map((tunnel) => [tunnel.uuid, tunnel]));
const none = new Map<string, AgentTunnel>();

test('the reconciler hears of a change once the journal is written, not before', async () => {
  const world = createFakeTunnels();
  const wanted = createWantedTunnels(world.open({ changed: () => undefined }));
  wanted.restore(mapOf(tunnelOf(1)));
  await wanted.start();
  wanted.change(mapOf(tunnelOf(2)), [uuidOf(1)]);
  const written = Promise.withResolvers<void>();
  wanted.handOver(written.promise);
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([...world.devices.keys()], [uuidOf(1)]);
  written.resolve();
  await until('it is done', () => wanted.applied === wanted.token);
  assert.deepEqual([...world.devices.keys()], [uuidOf(2)]);
});

test('what is wanted while the first look at the kernel goes on is told after it, in order', async () => {
  const world = createFakeTunnels();
  world.held = true;
  const wanted = createWantedTunnels(world.open({ changed: () => undefined }));
  wanted.restore(mapOf(tunnelOf(1)));
  const started = wanted.start();
  wanted.change(mapOf(tunnelOf(2)), []);
  wanted.handOver(Promise.resolve());
  wanted.change(none, [uuidOf(1)]);
  wanted.handOver(Promise.resolve());
  assert.equal(wanted.applied, -1);
  world.held = false;
  await started;
  await until('it is done', () => wanted.applied === wanted.token);
  assert.deepEqual([...world.devices.keys()], [uuidOf(2)]);
});

test('a removal of something else tells the reconciler nothing', async () => {
  const wanted = createWantedTunnels(createFakeTunnels().open({ changed: () => undefined }));
  wanted.restore(mapOf(tunnelOf(1)));
  await wanted.start();
  wanted.change(none, [uuidOf(7)]);
  assert.equal(wanted.token, 0);
  assert.equal(wanted.applied, 0);
});

test('where nothing is known, nothing is said to be wanted until all is told', async () => {
  const world = createFakeTunnels();
  const wanted = createWantedTunnels(world.open({ changed: () => undefined }));
  await wanted.start();
  wanted.change(mapOf(tunnelOf(2)), []);
  assert.equal(wanted.token, 0);
  wanted.replace(mapOf(tunnelOf(3)));
  wanted.handOver(Promise.resolve());
  await until('it is done', () => wanted.applied === 1);
  assert.deepEqual([...world.devices.keys()], [uuidOf(3)]);
});

test('without a reconciler tunnels are noted, and hold nothing up', async () => {
  const wanted = createWantedTunnels(undefined);
  await wanted.start();
  wanted.replace(mapOf(tunnelOf(1)));
  wanted.handOver(Promise.resolve());
  assert.equal(wanted.tunnels.size, 1);
  assert.ok(wanted.applied > wanted.token);
});
