import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deviceGroup, deviceName, nameAttempts, ownerOf, unnamed } from './device-name.ts';

const uuid = '0190a5d0-1111-7000-8000-000000000001';

test('a tunnel’s device has the same name for ever, of 15 characters', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat({ max: nameAttempts - 1 }), (each, attempt) => {
      assert.match(deviceName(each, attempt), /^lv[0-9a-z]{13}$/);
      assert.equal(deviceName(each, attempt), deviceName(each, attempt));
    }),
  );
});

test('no two of 100 000 tunnels, nor of one tunnel’s names, are the same', () => {
  const names = new Set<string>();
  for (let n = 0; n < 100_000; n++)
    names.add(deviceName(`0190a5d0-0000-7000-8000-${n.toString(16).padStart(12, '0')}`, 0));
  for (let attempt = 1; attempt < nameAttempts; attempt++) names.add(deviceName(uuid, attempt));
  assert.equal(names.size, 100_000 + nameAttempts - 1);
});

const marks = { name: deviceName(uuid, 0), alias: uuid as string | undefined, group: 0, routes: [] as string[] };

test('a device is ours by name and alias together, under each of the names that it may have', () => {
  for (let attempt = 0; attempt < nameAttempts; attempt++)
    assert.equal(ownerOf({ ...marks, name: deviceName(uuid, attempt) }), uuid);
  const marked = { ...marks, group: deviceGroup };
  assert.equal(ownerOf({ ...marked, name: deviceName(uuid, nameAttempts) }), undefined);
  const other = '0190a5d0-1111-7000-8000-000000000002';
  assert.equal(ownerOf({ ...marked, name: deviceName(other, 0) }), undefined);
  // The customer's end of the same tunnel, pasted on the same machine.
  assert.equal(ownerOf({ ...marked, name: 'lv15' }), undefined);
  assert.equal(ownerOf({ ...marked, alias: 'uplink to our other site' }), undefined);
});

test('a device that does not say of which tunnel it is, is ours in our group, or by our routes', () => {
  const nameless = { ...marks, alias: undefined };
  assert.equal(ownerOf({ ...nameless, group: deviceGroup }), unnamed);
  assert.equal(ownerOf(nameless), undefined);
  assert.equal(ownerOf({ ...nameless, routes: ['192.0.2.0/24'] }), unnamed);
  assert.equal(ownerOf({ ...marks, alias: 'mine now', routes: ['192.0.2.0/24'] }), unnamed);
  assert.equal(ownerOf({ ...nameless, name: 'eth0', group: deviceGroup, routes: ['192.0.2.0/24'] }), undefined);
});
