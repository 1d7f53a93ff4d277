/**
 * Every format's text for every kind of tunnel, compared with a file. LEVEE_WRITE_GOLDEN=1 writes the files anew: then
 * read what changed before it is committed.
 */
import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { configFormats } from '@levee/contract/schemas/tunnel.ts';
import { sampleTunnels } from './testing/sample-tunnels.ts';
import { writeConfig } from './write-config.ts';

const folder = join(import.meta.dirname, 'golden');
const writes = process.env.LEVEE_WRITE_GOLDEN === '1';

const texts = new Map<string, string>();
for (const format of configFormats) {
  for (const [name, tunnel] of Object.entries(sampleTunnels)) {
    const written = writeConfig(format, tunnel);
    if (written.ok) texts.set(`${format}/${name}.txt`, written.text);
  }
}

for (const [file, text] of texts) {
  test(`${file} is what was read and found right`, () => {
    const path = join(folder, file);
    if (writes) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    assert.equal(text, readFileSync(path, 'utf8'));
  });
}

test('no file is left of a text that is not written any more', () => {
  assert.deepEqual(globSync('*/*.txt', { cwd: folder }).sort(), [...texts.keys()].sort());
});

test('a text is of printable ASCII and lines alone: no terminal chokes on it', () => {
  for (const [file, text] of texts) assert.match(text, /^(?:[\x20-\x7e]*\n)+$/, file);
});

test('a system that lacks what the tunnel needs says so, with the formats that have it', () => {
  const refusals = configFormats.flatMap((format) =>
    Object.entries(sampleTunnels).flatMap(([name, tunnel]) => {
      const written = writeConfig(format, tunnel);
      return written.ok ? [] : [`${format} ${name}: ${written.lacks}: ${written.instead.join(' ')}`];
    }),
  );
  const [geneve, keyed] = ['iproute2 systemd-networkd vyos', 'iproute2 systemd-networkd netplan junos ios vyos'];
  const lacksGeneve = (format: string, words: string) =>
    ['geneve-v4', 'geneve-v6', 'v4-inside', 'single-address'].map((name) => `${format} ${name}: ${words}: ${geneve}`);
  const overIpv6 = 'iproute2 systemd-networkd netplan ios vyos';
  assert.deepEqual(
    refusals.sort(),
    [
      ...lacksGeneve('netplan', 'knows no Geneve devices'),
      ...lacksGeneve('mikrotik', 'knows no Geneve devices'),
      ...lacksGeneve('junos', 'ends no Geneve tunnels'),
      ...lacksGeneve('ios', 'ends no Geneve tunnels'),
      ...['gre-v4', 'two-ends', 'v6-inside'].map((name) => `mikrotik ${name}: ${noKey}: ${keyed}`),
      `mikrotik gre-v6: ${noKey}: ${overIpv6}`,
      `junos gre-v6: has GRE over IPv4 only: ${overIpv6}`,
      'junos unkeyed-v6: has GRE over IPv4 only: iproute2 systemd-networkd netplan mikrotik ios vyos',
    ].sort(),
  );
});

const noKey = 'knows no key in GRE; create the tunnel with "keyed": false for it';
