import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { enterOwnNamespace } from '../testing/own-namespace.ts';
import { notForwarded, readForwarding } from './forwarding.ts';

const skip = enterOwnNamespace() ?? false;
const set = (...settings: string[]) => execFileSync('sysctl', ['-qw', ...settings]);

test('forwarding is on for a family when the kernel forwards any of it', { skip }, () => {
  set('net.ipv4.ip_forward=0', 'net.ipv6.conf.all.forwarding=0');
  assert.deepEqual(readForwarding(), { ipv4: false, ipv6: false });
  assert.deepEqual(notForwarded(readForwarding()), ['IPv4', 'IPv6']);
  set('net.ipv4.ip_forward=1');
  assert.deepEqual(notForwarded(readForwarding()), ['IPv6']);
  set('net.ipv6.conf.all.forwarding=1');
  assert.deepEqual(readForwarding(), { ipv4: true, ipv6: true });
  // On one device alone: IPv4 forwards what comes by it.
  set('net.ipv4.ip_forward=0', 'net.ipv4.conf.lo.forwarding=1');
  assert.equal(readForwarding().ipv4, false);
  execFileSync('ip', ['link', 'add', 'lvtest1', 'type', 'veth', 'peer', 'name', 'lvtest2']);
  set('net.ipv4.conf.lvtest2.forwarding=1');
  assert.equal(readForwarding().ipv4, true);
});

test('a kernel without IPv6 forwards none of it', () => {
  assert.deepEqual(readForwarding('/nonexistent'), { ipv4: false, ipv6: false });
});
