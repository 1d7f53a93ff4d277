import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { acknowledgement, type FakeSecondary, fakeSecondary } from './testing/fake-secondary.ts';
import { memoryZones, zoneSettings } from './testing/memory-zones.ts';
import { serve } from './testing/test-server.ts';

const four = '113.0.203.in-addr.arpa';
const pace = { gather: 10, apart: 60, repeat: 20, repeatAtMost: 80, datagrams: 1 };
const at = ({ port }: FakeSecondary) => ({ address: '127.0.0.1', port });

test('a start tells every secondary of every zone, in the form of RFC 1996', async (t) => {
  const one = await fakeSecondary(t, 0);
  const two = await fakeSecondary(t, 0);
  const zones = memoryZones();
  for (let index = 0; index < 30; index += 1) {
    zones.put(zoneSettings(`${index}.0.203.in-addr.arpa`, { secondaries: [at(one), at(two)], serial: index }), []);
  }
  const server = await serve(t, zones);
  await waitUntil(() => server.counters.notifications.acknowledged === 60, 'all acknowledgements');
  for (const { received } of [one, two]) {
    assert.deepEqual(
      received.map(({ zone, serial }) => `${zone} ${serial}`).sort(),
      Array.from({ length: 30 }, (_, index) => `${index}.0.203.in-addr.arpa ${index}`).sort(),
    );
    // Operation 4, authoritative, no answer.
    for (const { word } of received) assert.equal(word, 0x2400);
  }
  assert.equal(server.counters.notifications.sent, 60);
});

test('changes that come together are told once, and the last of them always', async (t) => {
  const secondary = await fakeSecondary(t, 0);
  const zones = memoryZones();
  zones.put(zoneSettings(four, { secondaries: [at(secondary)] }), []);
  const server = await serve(t, zones, { notifyPace: pace });
  await waitUntil(() => secondary.received.length === 1, 'the first');
  const end = performance.now() + 300;
  let last = 0;
  // Without a pause longer than what is gathered: waiting for one would tell nothing as long as it lasts.
  await waitUntil(() => {
    last = zones.change(four, [[`7.${four}`, 'a.example.net']]).serial;
    return performance.now() > end;
  }, 'a while of changes');
  await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === last, 'the last serial');
  const count = secondary.received.length;
  assert.ok(count >= 3 && count <= 8, `${count} notifications of ${last} changes`);
  for (const [index, { atMilliseconds }] of secondary.received.entries()) {
    const before = secondary.received[index - 1];
    if (before !== undefined) assert.ok(atMilliseconds - before.atMilliseconds > pace.apart - 15);
  }
});

test('silence and errors are met by repetition with growing pauses, until it is acknowledged', async (t) => {
  for (const code of [undefined, 5]) {
    const secondary = await fakeSecondary(t, code);
    const zones = memoryZones();
    zones.put(zoneSettings(four, { secondaries: [at(secondary)], serial: 7 }), []);
    const server = await serve(t, zones, { notifyPace: pace });
    await waitUntil(() => secondary.received.length === 7, 'repetitions');
    const times = secondary.received.map(({ atMilliseconds }) => atMilliseconds);
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    for (const [index, least] of [20, 40, 80, 80].entries()) {
      assert.ok((pauses[index] ?? 0) > least - 5, `pause ${index}: ${pauses[index]}`);
    }
    assert.equal(new Set(secondary.received.map(({ id }) => id)).size > 1, true);
    const [state] = server.secondaries(four);
    assert.deepEqual(
      [state?.acknowledgedSerial, state?.problem],
      [undefined, code && `answered with code ${code} to NOTIFY`],
    );
    assert.equal(server.warnings.length, 1);
    assert.match(
      server.warnings[0] ?? '',
      /^zone 113\.0\.203\.in-addr\.arpa: secondary 127\.0\.0\.1 port \d+ does not acknowledge/,
    );
    secondary.answerCode = 0;
    await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === 7, 'the acknowledgement');
    const after = server.secondaries(four)[0];
    assert.deepEqual([after?.unanswered, after?.problem], [0, undefined]);
    const { sent } = server.counters.notifications;
    // A change makes the next sending: nothing else was left to be sent.
    zones.change(four, []);
    await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === 8, 'the next acknowledgement');
    assert.equal(server.counters.notifications.sent, sent + 1);
  }
});

test('a secondary that returns is told of the next change at once, not after the pause it has earned', async (t) => {
  const secondary = await fakeSecondary(t, undefined);
  const zones = memoryZones();
  zones.put(zoneSettings(four, { secondaries: [at(secondary)] }), []);
  const slow = { gather: 10, apart: 20, repeat: 30_000, repeatAtMost: 60_000, datagrams: 1 };
  const server = await serve(t, zones, { notifyPace: { ...slow, repeat: 10, repeatAtMost: 60_000 } });
  await waitUntil(() => (server.secondaries(four)[0]?.unanswered ?? 0) >= 6, 'a pause of 640 ms');
  secondary.answerCode = 0;
  const before = performance.now();
  zones.change(four, []);
  await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === 2, 'the acknowledgement');
  assert.ok(performance.now() - before < 400);
});

test('a secondary that is listed no longer is told nothing more, a new one is told at once', async (t) => {
  const former = await fakeSecondary(t, undefined);
  const next = await fakeSecondary(t, 0);
  const zones = memoryZones();
  zones.put(zoneSettings(four, { secondaries: [at(former)] }), []);
  const server = await serve(t, zones, { notifyPace: pace });
  await waitUntil(() => former.received.length === 2, 'two notifications');
  zones.put(zoneSettings(four, { secondaries: [at(next)] }), []);
  const { length } = former.received;
  await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === 1, 'the acknowledgement');
  zones.change(four, []);
  await waitUntil(() => next.received.length === 2, 'the change');
  // One may have been on its way.
  assert.ok(former.received.length <= length + 1);
  zones.remove(four);
  assert.deepEqual(server.secondaries(four), []);
});

test('an acknowledgement counts from the secondary alone, with the number that was sent', async (t) => {
  const secondary = await fakeSecondary(t, undefined);
  const stranger = await fakeSecondary(t, undefined);
  const zones = memoryZones();
  zones.put(zoneSettings(four, { secondaries: [at(secondary)] }), []);
  const patient = { ...pace, repeat: 60_000, repeatAtMost: 60_000 };
  const server = await serve(t, zones, { notifyPace: patient });
  await waitUntil(() => secondary.received.length === 1, 'the notification');
  const [notification] = secondary.received;
  assert.ok(notification !== undefined);
  const { octets, from } = notification;
  const right = acknowledgement(octets, 0);
  const wrongNumber = Buffer.from(right);
  wrongNumber.writeUInt16BE(right.readUInt16BE(0) ^ 1, 0);
  const ofAnotherOperation = Buffer.from(right);
  ofAnotherOperation.writeUInt16BE(0x8400, 2);
  stranger.send(right, from);
  for (const odd of [wrongNumber, ofAnotherOperation, octets, right.subarray(0, 11)]) secondary.send(odd, from);
  // The first error to be told of says that all before it have been read.
  secondary.send(acknowledgement(octets, 9), from);
  await waitUntil(() => server.secondaries(four)[0]?.problem !== undefined, 'the error');
  assert.equal(server.counters.notifications.acknowledged, 0);
  secondary.send(right, from);
  await waitUntil(() => server.secondaries(four)[0]?.acknowledgedSerial === 1, 'the acknowledgement');
});
