import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deviceGroup, deviceName, nameAttempts, ownerOf } from './device-name.ts';

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

test('a device is ours by name and alias together, under each of the names that it may have', () => {
  for (let attempt = 0; attempt < nameAttempts; attempt++)
    assert.equal(ownerOf(deviceName(uuid, attempt), uuid, 0), uuid);
  assert.equal(ownerOf(deviceName(uuid, nameAttempts), uuid, deviceGroup), undefined);
  const other = '0190a5d0-1111-7000-8000-000000000002';
  assert.equal(ownerOf(deviceName(other, 0), uuid, deviceGroup), undefined);
  // The customer's end of the same tunnel, pasted on the same machine.
  assert.equal(ownerOf('lv15', uuid, deviceGroup), undefined);
  assert.equal(ownerOf(deviceName(uuid, 0), 'uplink to our other site', deviceGroup), undefined);
});

test('a device without an alias is one of ours that was not finished only in our group', () => {
  assert.equal(ownerOf(deviceName(uuid, 0), undefined, deviceGroup), 'unfinished');
  assert.equal(ownerOf(deviceName(uuid, 0), undefined, 0), undefined);
  assert.equal(ownerOf('eth0', undefined, deviceGroup), undefined);
});
