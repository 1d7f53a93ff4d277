/**
 * The table's text for a router with every kind of tunnel, compared with a file (LEVEE_WRITE_GOLDEN=1 writes it anew: then
 * read what changed), and given to a real kernel.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { enterOwnNamespace, nft } from '../testing/own-namespace.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { tableText } from './tunnel-table.ts';
import { readTunnel, type WantedDevice } from './wanted-device.ts';

const skip = enterOwnNamespace() ?? false;
const golden = join(import.meta.dirname, 'golden', 'every-kind.nft');

function devicesOf(...tunnels: readonly AgentTunnel[]): Map<string, WantedDevice> {
  return new Map(
    tunnels.map((tunnel) => {
      const read = readTunnel(tunnel);
      assert.ok(read.ok, read.ok ? '' : read.reason);
      return [`lv${tunnel.number}`, read.device];
    }),
  );
}

const ipv6 = { endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' };
const everyKind = devicesOf(
  tunnelOf(1, { ips: ['192.0.2.0/28', '192.0.2.77', '2001:db8:7::/48'] }),
  tunnelOf(2, { keyed: false }),
  tunnelOf(3, { ...ipv6, ips: ['2001:db8:8::/48'] }),
  tunnelOf(4, { type: 'Geneve' }),
  tunnelOf(5, { type: 'Geneve', endpoint: '198.51.100.5' }),
  tunnelOf(6, { type: 'Geneve', ...ipv6 }),
);

test('the table for every kind of tunnel is what was read and found right', () => {
  const text = tableText(everyKind);
  if (process.env.LEVEE_WRITE_GOLDEN === '1') writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, 'utf8'));
});

test('a real kernel takes it, replaces it, and is rid of it', { skip }, () => {
  nft(tableText(everyKind));
  assert.match(nft('list table inet levee_tunnel\n'), /chain from_lv6/);
  nft(tableText(devicesOf(tunnelOf(1))));
  const second = nft('list table inet levee_tunnel\n');
  assert.doesNotMatch(second, /lv6|geneve|hook_output/);
  nft(tableText(new Map()));
  assert.equal(nft('list tables\n'), '');
  nft(tableText(new Map()));
});

test('subnets that lie in each other, or hold an inner address, do not spoil the table', { skip }, () => {
  const text = tableText(
    devicesOf(tunnelOf(1, { ips: ['10.255.0.0/16', '192.0.2.7', '192.0.2.0/24', 'fd00::/16', '::/0'] })),
  );
  assert.match(text, /ip saddr \{ 10\.255\.0\.0\/16, 192\.0\.2\.0\/24 \}/);
  assert.match(text, /ip6 saddr \{ ::\/0 \}/);
  nft(text);
});

test('256 subnets for each of 20 tunnels are one transaction', { skip }, () => {
  const ips = (n: number) => Array.from({ length: 256 }, (_, at) => `10.${n}.${at}.0/24`);
  nft(tableText(devicesOf(...Array.from({ length: 20 }, (_, n) => tunnelOf(n + 1, { ips: ips(n) })))));
});
