import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ownDirectory } from '../testing/directory.ts';
import { tunnelCapabilities } from './capabilities.ts';

function places(t: TestContext, loaded: readonly string[], files: Readonly<Record<string, string>>) {
  const folder = ownDirectory(t);
  const [modules, lists] = [join(folder, 'loaded'), join(folder, 'lists')];
  for (const name of ['', ...loaded]) mkdirSync(join(modules, name), { recursive: true });
  mkdirSync(lists);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(lists, name), text);
  return { loaded: modules, lists };
}

test('a module that is loaded, at hand or part of the kernel makes its type of tunnel possible', (t) => {
  assert.deepEqual(tunnelCapabilities(places(t, [], {})), []);
  assert.deepEqual(tunnelCapabilities(places(t, ['ip_gre'], {})), ['tunnel:GRE']);
  const dependencies = 'kernel/net/ipv6/ip6_gre.ko: kernel/net/ipv4/gre.ko\nkernel/net/ipv4/gre.ko:\n';
  assert.deepEqual(tunnelCapabilities(places(t, [], { 'modules.dep': dependencies })), ['tunnel:GRE']);
  const packed = 'kernel/drivers/net/geneve.ko.xz: kernel/net/ipv4/udp_tunnel.ko.xz\n';
  assert.deepEqual(tunnelCapabilities(places(t, [], { 'modules.dep': packed })), ['tunnel:Geneve']);
  const builtin = 'kernel/net/ipv4/ip_gre.ko\nkernel/drivers/net/geneve.ko\n';
  assert.deepEqual(tunnelCapabilities(places(t, [], { 'modules.builtin': builtin })), ['tunnel:GRE', 'tunnel:Geneve']);
});

test('a module whose name is only like one, or that others need, makes none', (t) => {
  assert.deepEqual(tunnelCapabilities(places(t, ['gre'], { 'modules.dep': 'kernel/net/ipv4/gre.ko:\n' })), []);
});
