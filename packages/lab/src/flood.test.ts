import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startFlood } from './flood.ts';
import { labObstacle } from './namespace.ts';
import { buildFrame } from './packet-build.ts';
import { openPacketSocket } from './packet-socket.ts';
import { device, hardwareAddress, RouterPath } from './router-path.ts';

const skip = labObstacle() ?? false;
let path: RouterPath;
before(() => {
  if (!skip) path = new RouterPath({ protectedPrefixes: ['203.0.113.0/24'], label: 'flood' });
});
after(() => path?.remove());

const frames = Array.from({ length: 37 }, (_, id) =>
  buildFrame({
    family: 4,
    source: 0x0a000000n + BigInt(id),
    destination: 0xcb007105n,
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id,
    transport: { kind: 'udp', sourcePort: 53, destinationPort: 5000 + id },
  }),
);

test('every packet of a counted flood crosses the router, no more and no fewer', { skip }, async () => {
  using receiving = openPacketSocket(path.customer, { device: device.customer, receiveBytes: 64 });
  const result = await startFlood({
    namespace: path.attacker.name,
    device: device.attacker,
    frames,
    seconds: 20,
    packets: 5000,
  }).finished;
  assert.equal(result.packets, 5000);
  let arrived = 0;
  receiving.receive((frame) => {
    if (frame[12] === 0x08) arrived++; // IPv6 has noise of its own: a new address reports its multicast group
  });
  assert.equal(receiving.droppedFrames(), 0);
  assert.equal(arrived, 5000);
});

test('a flood keeps its rate and its time', { skip }, async () => {
  const flood = startFlood({
    namespace: path.attacker.name,
    device: device.attacker,
    frames,
    seconds: 1,
    packetsPerSecond: 5000,
  });
  const result = await flood.finished;
  assert.ok(Math.abs(result.packets - 5000) <= 250, `${result.packets} packets`);
  assert.equal(flood.sent(), result.packets);
});

test('a flood that is stopped ends, and an endless one is refused', { skip }, async () => {
  const flood = startFlood({ namespace: path.attacker.name, device: device.attacker, frames, seconds: 60 });
  const deadline = performance.now() + 5000;
  while (flood.sent() === 0 && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
  const result = await flood.stop();
  assert.ok(result.packets > 0 && result.seconds < 10);
  assert.throws(
    () => startFlood({ namespace: 'x', device: 'y', frames, seconds: Number.POSITIVE_INFINITY }),
    /at most 600/,
  );
});
