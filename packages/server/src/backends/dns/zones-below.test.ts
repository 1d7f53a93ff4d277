import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { servedZones as served, zoneSettings } from './testing/memory-zones.ts';
import { type Asked, ask } from './testing/messages.ts';
import type { ZoneRecord } from './zone-source.ts';

const four = '113.0.203.in-addr.arpa';
const soa = 'ns1.example.net hostmaster.example.net 1 3600 600 1209600 60';

describe('zones below', () => {
  const half = `0/25.${four}`;
  const other = `128/25.${four}`;
  const nameservers = ['ns3.example.net', 'ns4.example.net'];
  const above: ZoneRecord[] = [
    [`200.${four}`, 'wide.example.net'],
    [half, { nameservers }],
    [`7.${four}`, { alias: `7.${half}` }],
    [`8.${four}`, { alias: `8.${half}` }],
    [other, { nameservers }],
    [`129.${four}`, { alias: `129.${other}` }],
    [`9.${four}`, { alias: 'nine.example.org' }],
    [`10.${four}`, { alias: `9.${four}` }],
  ];
  const nested = served([zoneSettings(four), above], [zoneSettings(half), [[`7.${half}`, 'mail.example.net']]]);
  const toHalf = `7.${four} 300 CNAME 7.${half}`;
  const cut = nameservers.map((server) => `${other} 300 NS ${server}`);
  const cases: [string, Asked, { code: number; aa: boolean; answers: string[]; authorities: string[] }][] = [
    [
      'an alias is followed into the zone that has the record',
      { name: `7.${four}` },
      { code: 0, aa: true, answers: [toHalf, `7.${half} 300 PTR mail.example.net`], authorities: [] },
    ],
    [
      'the code is that of the name to which it led (RFC 6604)',
      { name: `8.${four}` },
      { code: 3, aa: true, answers: [`8.${four} 300 CNAME 8.${half}`], authorities: [`${half} 60 SOA ${soa}`] },
    ],
    [
      'another type than PTR follows it too',
      { name: `7.${four}`, type: 'TXT' },
      { code: 0, aa: true, answers: [toHalf], authorities: [`${half} 60 SOA ${soa}`] },
    ],
    [
      'the alias itself',
      { name: `7.${four}`, type: 'CNAME' },
      { code: 0, aa: true, answers: [toHalf], authorities: [] },
    ],
    ['ANY is the alias', { name: `7.${four}`, type: 'ANY' }, { code: 0, aa: true, answers: [toHalf], authorities: [] }],
    [
      'an alias to a zone that others serve ends with who they are',
      { name: `129.${four}` },
      { code: 0, aa: true, answers: [`129.${four} 300 CNAME 129.${other}`], authorities: cut },
    ],
    [
      'an alias to a name that is not ours is all there is to say',
      { name: `9.${four}` },
      { code: 0, aa: true, answers: [`9.${four} 300 CNAME nine.example.org`], authorities: [] },
    ],
    [
      'an alias of an alias is left to who asks',
      { name: `10.${four}` },
      { code: 0, aa: true, answers: [`10.${four} 300 CNAME 9.${four}`], authorities: [] },
    ],
    ['a zone that others serve', { name: other, type: 'SOA' }, { code: 0, aa: false, answers: [], authorities: cut }],
    ['a name in it', { name: `a.b.${other}` }, { code: 0, aa: false, answers: [], authorities: cut }],
    ['its NS', { name: other, type: 'NS' }, { code: 0, aa: false, answers: [], authorities: cut }],
    [
      'its DS is the business of the zone above',
      { name: other, type: 'DS' },
      { code: 0, aa: true, answers: [], authorities: [`${four} 60 SOA ${soa}`] },
    ],
    [
      'so is the DS of one that is served here',
      { name: half, type: 'DS' },
      { code: 0, aa: true, answers: [], authorities: [`${four} 60 SOA ${soa}`] },
    ],
    [
      'one that is served here is answered itself',
      { name: half, type: 'NS' },
      {
        code: 0,
        aa: true,
        answers: [`${half} 300 NS ns1.example.net`, `${half} 300 NS ns2.example.net`],
        authorities: [],
      },
    ],
    [
      'names beside are as they were',
      { name: `200.${four}` },
      { code: 0, aa: true, answers: [`200.${four} 300 PTR wide.example.net`], authorities: [] },
    ],
  ];
  for (const [what, asked, expected] of cases) {
    test(what, () => {
      const { code, flags, answers, authorities } = ask(nested, asked);
      assert.deepEqual({ code, aa: flags.aa, answers, authorities }, expected);
    });
  }

  test('a zone that is no longer cut off, or an alias that is gone, answers as any other name', () => {
    const zones = served([zoneSettings(four), above]);
    assert.equal(ask(zones, { name: `7.${half}` }).flags.aa, false);
    zones.change(zoneSettings(four), [[`7.${four}`, 'direct.example.net']], [half, `8.${four}`]);
    assert.deepEqual(ask(zones, { name: `7.${four}` }).answers, [`7.${four} 300 PTR direct.example.net`]);
    const gone = ask(zones, { name: `7.${half}` });
    assert.deepEqual([gone.code, gone.flags.aa], [3, true]);
    assert.equal(ask(zones, { name: `8.${four}` }).code, 3);
  });
});
