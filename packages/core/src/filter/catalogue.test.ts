import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filterKind, filterKindNamed, filterKinds } from './catalogue.ts';
import { limitsOf } from './kind-limits.ts';
import { filterNeed } from './need.ts';
import { parseFilter } from './parse-filter.ts';

/** Stored by id in every installation, named in scripts: a kind may join, none may change or go. */
const published: readonly (readonly [id: number, name: string])[] = [
  [1, 'tcp-syn-protect'],
  [2, 'tcp-symmetric'],
  [3, 'udp-amplification'],
  [4, 'icmp-limit'],
  [10, 'source-engine'],
  [11, 'minecraft-java'],
  [12, 'minecraft-bedrock'],
  [13, 'minecraft-query'],
  [14, 'fivem'],
  [15, 'teamspeak3'],
  [16, 'samp'],
  [17, 'mumble'],
  [20, 'wireguard'],
  [21, 'openvpn-udp'],
  [22, 'dns'],
  [23, 'quic'],
  [24, 'dtls'],
  [25, 'stun'],
  [26, 'ntp'],
  [27, 'sip'],
  [28, 'rtp'],
  [29, 'web'],
];

test('the kinds that were published keep their ids and names', () => {
  assert.deepEqual(
    filterKinds.map(({ id, name }) => [id, name]),
    published,
  );
});

test('no two kinds share an id, a name or a label, and each is found by id and by name', () => {
  for (const member of ['id', 'name', 'label'] as const) {
    assert.equal(new Set(filterKinds.map((kind) => kind[member])).size, filterKinds.length, member);
  }
  for (const kind of filterKinds) {
    assert.equal(filterKind(kind.id), kind);
    assert.equal(filterKindNamed(kind.name), kind);
  }
  assert.equal(filterKind(5), undefined);
  assert.equal(filterKindNamed('WireGuard'), undefined);
});

test('every file of a kind is in the catalogue, under its name', () => {
  const files = readdirSync(join(import.meta.dirname, 'kinds'))
    .filter((file) => !file.endsWith('.vectors.ts'))
    .map((file) => file.replace(/\.ts$/, ''));
  assert.deepEqual(files.sort(), filterKinds.map(({ name }) => name).sort());
});

test('what is said of a kind fits together', () => {
  for (const kind of filterKinds) {
    const { name, transports, defaultPorts, destinationPorts, families, shortestPrefix } = kind;
    assert.ok(Number.isInteger(kind.id) && kind.id >= 1 && kind.id <= 65_535, name);
    assert.match(name, /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/);
    assert.ok(kind.label.length > 0 && kind.label.length <= 64, name);
    assert.ok(kind.limits.length > 0, `${name} can do everything`);
    for (const sentence of [kind.description, ...limitsOf(kind)]) assert.match(sentence, /^[A-Z].*\.$/s, name);
    assert.ok(families.length > 0 && transports.length > 0, name);
    const hasPorts = transports.some((transport) => transport !== 'icmp');
    assert.equal(destinationPorts !== 'none', hasPorts, `${name}: ports belong to transports that have them`);
    assert.ok(destinationPorts === 'optional' || defaultPorts.length === 0, `${name}: ports that are never used`);
    for (const { transport, start, end } of defaultPorts) {
      assert.ok(transports.includes(transport), `${name} does not look at ${transport}`);
      assert.ok(start >= 1 && start <= end && end <= 65_535, name);
    }
    for (const family of [4, 6] as const) {
      if (shortestPrefix?.[family] !== undefined) assert.ok(families.includes(family), name);
    }
  }
});

test('a minimal filter of each kind is accepted for each of its families, and for no other', () => {
  for (const kind of filterKinds) {
    const port = kind.destinationPorts === 'required' ? { port: { dst: { start: 4000 } } } : {};
    for (const [family, dst] of [
      [4, '203.0.113.7'],
      [6, '2001:db8::7'],
    ] as const) {
      const parsed = parseFilter({ dst, filter: kind.id, ...port }, { uuid: 'u', sequence: 1 });
      assert.equal(parsed.ok, kind.families.includes(family), `${kind.name} for ${dst}`);
      if (parsed.ok) assert.equal(parsed.filter.kind, kind);
    }
  }
});

test("what a filter needs of a router's agent is named by its kind's id", () => {
  assert.deepEqual(filterNeed(20), { capability: 'filter:20', words: 'filters of kind wireguard (20)' });
  assert.deepEqual(filterNeed(999), { capability: 'filter:999', words: 'filters of kind unknown (999)' });
});
