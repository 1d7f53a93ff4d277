import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { delegationOf, type KeptZone, nameserversOf, nestedNames } from './nested-zones.ts';
import { ownerName, reverseName, reverseZoneFromTrusted } from './reverse-name.ts';
import { ZoneIndex, zoneClash } from './zone-index.ts';

const wide = '203.in-addr.arpa';
const four = '113.0.203.in-addr.arpa';
const half = `0/25.${four}`;
const quarter = `64/26.${four}`;
const single = `7.${four}`;
const six = '8.b.d.0.1.0.0.2.ip6.arpa';

type Kept = readonly [name: string, more?: Partial<KeptZone>];

function zonesOf(...given: readonly Kept[]) {
  const zones = given.map(
    ([name, more]): KeptZone => ({ ...reverseZoneFromTrusted(name), driver: 'embedded', ...more }),
  );
  const index = new ZoneIndex(zones);
  const named = (name: string): KeptZone => {
    const zone = zones.find((each) => each.name === name);
    assert.ok(zone !== undefined);
    return zone;
  };
  return { zones, index, named };
}

function nestedIn(name: string, ...given: readonly Kept[]) {
  const { zones, index, named } = zonesOf(...given);
  const { cuts, aliases } = nestedNames(zones, index).get(named(name)) ?? { cuts: [], aliases: [] };
  return { cuts: cuts.map((cut) => cut.name), aliases: new Map(aliases) };
}

test('a /24 leads each address of a classless zone to its name there, and delegates that zone', () => {
  const { cuts, aliases } = nestedIn(four, [four], [half]);
  assert.deepEqual(cuts, [half]);
  assert.equal(aliases.size, 128);
  assert.equal(aliases.get(`31.${four}`), `31.${half}`);
  assert.equal(aliases.has(`128.${four}`), false);
});

test('of classless zones one in the other the /24 leads to the narrowest, and so does the one around it', () => {
  const given = [[four], [half], [quarter], [`192/26.${four}`]] as const;
  const { cuts, aliases } = nestedIn(four, ...given);
  assert.deepEqual(cuts, [half, quarter, `192/26.${four}`]);
  assert.equal(aliases.size, 192);
  assert.equal(aliases.get(`63.${four}`), `63.${half}`);
  assert.equal(aliases.get(`64.${four}`), `64.${quarter}`);
  const around = nestedIn(half, ...given);
  assert.deepEqual(around.cuts, [], 'its name is beside, not below');
  assert.equal(around.aliases.size, 64);
  assert.equal(around.aliases.get(`64.${half}`), `64.${quarter}`);
});

test('a zone without the one between has the records that would stand there', () => {
  assert.equal(nestedIn(wide, [wide], [half]).aliases.get(`31.${four}`), `31.${half}`);
  const between = nestedIn(wide, [wide], [four], [half]);
  assert.deepEqual([between.cuts, between.aliases.size], [[four], 0]);
});

test('a zone whose names are below anyway is delegated alone', () => {
  const inner = `7.0.0.0.${six}`;
  const { cuts, aliases } = nestedIn(six, [six], [inner], [`1.0.0.0.${inner}`]);
  assert.deepEqual([cuts, aliases.size], [[inner], 0]);
  const one = nestedIn(four, [four], [half], [single]);
  assert.deepEqual(one.cuts, [half, single]);
  assert.equal(one.aliases.has(single), false, 'the name is the zone itself');
  assert.equal(nestedIn(half, [four], [half], [single]).aliases.get(`7.${half}`), single);
});

const zoneName = fc.oneof(
  fc.constantFrom(wide, four, single, `0.${wide}`),
  fc
    .integer({ min: 25, max: 32 })
    .chain((length) =>
      fc.nat(2 ** (length - 24) - 1).map((index) => `${index * 2 ** (32 - length)}/${length}.${four}`),
    ),
);

test('whatever zones nest, following cuts and aliases from the widest leads every address to its own zone', () => {
  fc.assert(
    fc.property(fc.uniqueArray(zoneName, { maxLength: 7 }), fc.nat(255), (names, last) => {
      const given: string[] = [wide];
      for (const name of names) {
        const zone = reverseZoneFromTrusted(name);
        if (given.every((other) => zoneClash(zone, reverseZoneFromTrusted(other)) === undefined)) given.push(name);
      }
      const { zones, index, named } = zonesOf(...given.map((name): Kept => [name]));
      const nested = nestedNames(zones, index);
      const address = { family: 4, value: 0xcb007100n | BigInt(last) } as const;
      let [at, name] = [named(wide), reverseName(address)];
      for (let steps = 0; ; steps += 1) {
        assert.ok(steps < 10);
        const { cuts, aliases } = nested.get(at) ?? { cuts: [], aliases: [] };
        const below = cuts.find((cut) => name === cut.name || name.endsWith(`.${cut.name}`));
        const alias = new Map(aliases).get(name);
        assert.ok(below === undefined || alias === undefined, 'nothing stands below a cut');
        if (below !== undefined) at = below;
        else if (alias !== undefined) [at, name] = [named(wide), alias];
        else break;
      }
      const own = index.match(address);
      assert.ok(own !== undefined);
      assert.deepEqual([at.name, name], [own.name, ownerName(own, address)]);
    }),
    { numRuns: 300 },
  );
});

test('an embedded zone without name servers has those of the nearest embedded zone above it that has some', () => {
  const { index, named } = zonesOf(
    [wide, { nameservers: ['far.example.net'] }],
    [four, { nameservers: ['ns1.example.net'] }],
    [half],
    [quarter, { driver: 'rfc2136' }],
    [six],
  );
  assert.deepEqual(nameserversOf(named(half), index), ['ns1.example.net']);
  assert.equal(nameserversOf(named(quarter), index), undefined, 'another server is another');
  assert.equal(nameserversOf(named(six), index), undefined);
});

test('what the zone above must hold is told as lines of a zone file, and whether Levee holds it', () => {
  const nameservers = ['ns1.example.net', 'ns2.example.net'];
  const { index, named } = zonesOf(
    [four, { driver: 'rfc2136' }],
    [half, { nameservers }],
    [quarter],
    [six],
    [`7.${six}`],
    ['0-3.100.51.198.in-addr.arpa', { nameservers }],
  );
  assert.deepEqual(delegationOf(named(half), index), {
    zone: four,
    isMade: false,
    records: [
      `${half}. IN NS ns1.example.net.`,
      `${half}. IN NS ns2.example.net.`,
      `$GENERATE 0-63 $.${four}. CNAME $.${half}.`,
    ],
  });
  assert.deepEqual(delegationOf(named(`7.${six}`), index), { zone: six, isMade: true, records: [] });
  assert.deepEqual(
    delegationOf(named('0-3.100.51.198.in-addr.arpa'), index)?.records.at(-1),
    '$GENERATE 0-3 $.100.51.198.in-addr.arpa. CNAME $.0-3.100.51.198.in-addr.arpa.',
  );
  assert.equal(delegationOf(named(six), index), undefined);
  const made = zonesOf([four], [half]);
  assert.equal(delegationOf(made.named(half), made.index)?.isMade, true);
});
