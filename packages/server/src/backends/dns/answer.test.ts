import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { answerMessage, isNewer } from './answer.ts';
import { servedZones as served, zoneSettings } from './testing/memory-zones.ts';
import { type Asked, ask, queryOctets, readAnswer, reply, tcp, udp } from './testing/messages.ts';

const four = '113.0.203.in-addr.arpa';
const six = '8.b.d.0.1.0.0.2.ip6.arpa';
const classless = '0/25.2.0.192.in-addr.arpa';
const host = '7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.f.0.0.0';
const secondary = '192.0.2.53';
const soa = 'ns1.example.net hostmaster.example.net 1 3600 600 1209600 60';

const zones = served(
  [zoneSettings(four, { secondaries: [{ address: secondary, port: 53 }] }), [[`7.${four}`, 'mail.example.net']]],
  [zoneSettings(six), [[`${host}.${six}`, 'six.example.net']]],
  [zoneSettings(classless), [[`5.${classless}`, 'five.example.net']]],
);

describe('names of a zone', () => {
  const cases: [string, Asked, { code: number; answers: string[]; negative?: string }][] = [
    ['PTR', { name: `7.${four}` }, { code: 0, answers: [`7.${four} 300 PTR mail.example.net`] }],
    [
      'in any case',
      { name: `7.113.0.203.IN-Addr.ARPA` },
      { code: 0, answers: ['7.113.0.203.IN-Addr.ARPA 300 PTR mail.example.net'] },
    ],
    ['IPv6', { name: `${host}.${six}` }, { code: 0, answers: [`${host}.${six} 300 PTR six.example.net`] }],
    ['classless', { name: `5.${classless}` }, { code: 0, answers: [`5.${classless} 300 PTR five.example.net`] }],
    [
      'ANY of an address',
      { name: `7.${four}`, type: 'ANY' },
      { code: 0, answers: [`7.${four} 300 PTR mail.example.net`] },
    ],
    ['ANY of a zone is one set', { name: four, type: 'ANY' }, { code: 0, answers: [`${four} 300 SOA ${soa}`] }],
    ['SOA', { name: four, type: 'SOA' }, { code: 0, answers: [`${four} 300 SOA ${soa}`] }],
    [
      'NS',
      { name: four, type: 'NS' },
      { code: 0, answers: [`${four} 300 NS ns1.example.net`, `${four} 300 NS ns2.example.net`] },
    ],
    ['another type is no data', { name: `7.${four}`, type: 'TXT' }, { code: 0, answers: [], negative: four }],
    ['PTR of a zone is no data', { name: four }, { code: 0, answers: [], negative: four }],
    ['DS of a zone is no data', { name: four, type: 'DS' }, { code: 0, answers: [], negative: four }],
    ['a name without a record', { name: `8.${four}` }, { code: 3, answers: [], negative: four }],
    ['a name below a record', { name: `1.7.${four}` }, { code: 3, answers: [], negative: four }],
    ['an empty name between is no data', { name: `f.0.0.0.${six}` }, { code: 0, answers: [], negative: six }],
    ['beside it there is nothing', { name: `e.0.0.0.${six}` }, { code: 3, answers: [], negative: six }],
    ['a beginning of a label is no label', { name: `70.${four}` }, { code: 3, answers: [], negative: four }],
  ];
  for (const [what, asked, expected] of cases) {
    test(what, () => {
      const read = ask(zones, { id: 4711, ...asked });
      assert.equal(read.code, expected.code);
      assert.deepEqual(read.answers, expected.answers);
      const negative = expected.negative;
      assert.deepEqual(read.authorities, negative === undefined ? [] : [`${negative} 60 SOA ${soa}`]);
      assert.deepEqual(read.flags, { aa: true, tc: false, rd: false, ra: false });
      assert.equal(read.id, 4711);
      assert.equal(read.question, asked.name);
      assert.equal(read.edns, undefined);
    });
  }

  test('how long a missing name may be remembered is the lesser of minimum and TTL', () => {
    const short = served([zoneSettings(four, { ttlSeconds: 30, minimumSeconds: 900 }), []]);
    assert.deepEqual(ask(short, { name: `7.${four}` }).authorities, [
      `${four} 30 SOA ns1.example.net hostmaster.example.net 1 3600 600 1209600 900`,
    ]);
  });

  test('an address in the narrower of two zones is answered from that one, and what lies between the zones exists', () => {
    const wide = '203.in-addr.arpa';
    const nested = served(
      [zoneSettings(wide), [[`9.9.9.${wide}`, 'wide.example.net']]],
      [zoneSettings(four), [[`7.${four}`, 'narrow.example.net']]],
    );
    assert.deepEqual(ask(nested, { name: `7.${four}` }).answers, [`7.${four} 300 PTR narrow.example.net`]);
    assert.deepEqual(ask(nested, { name: `9.9.9.${wide}` }).answers, [`9.9.9.${wide} 300 PTR wide.example.net`]);
    const between = ask(nested, { name: `0.${wide}` });
    assert.deepEqual([between.code, between.authorities[0]?.split(' ')[0]], [0, wide]);
    assert.equal(ask(nested, { name: `1.${wide}` }).code, 3);
    nested.remove(four);
    assert.equal(ask(nested, { name: `0.${wide}` }).code, 3);
  });
});

describe('what is not ours', () => {
  const refused: [string, Asked][] = [
    ['another name', { name: 'example.net', type: 'A' }],
    ['the root', { name: '.', type: 'NS' }],
    ['the name above', { name: '0.203.in-addr.arpa', type: 'SOA' }],
    ['a name that only ends alike', { name: `1${four}` }],
    ['CHAOS', { name: 'version.bind', type: 'TXT', class: 3 }],
    ['any class', { name: four, type: 'SOA', class: 255 }],
  ];
  for (const [what, asked] of refused) {
    test(`${what} is refused`, () => {
      const read = ask(zones, asked);
      assert.deepEqual([read.code, read.answers, read.authorities, read.flags.aa], [5, [], [], false]);
    });
  }

  test('a dot inside a label is no border between labels', () => {
    const message = queryOctets({ name: `x${four}`, type: 'PTR' });
    // `x113` → three octets of which the second is a dot.
    message.set([3, 0x37, 0x2e, 0x31], 12);
    const odd = Buffer.concat([message.subarray(0, 16), message.subarray(17)]);
    const given = answerMessage(zones, odd, udp);
    assert.ok(given.kind === 'refused', given.kind);
  });

  test('other operations are not implemented, and name the operation', () => {
    for (const opcode of [1, 2, 4, 5, 6, 15]) {
      const given = reply(zones, { name: four, flags: opcode << 11 });
      assert.ok(given.kind === 'not_implemented');
      assert.equal(given.octets.readUInt16BE(2), 0x8000 | (opcode << 11) | 4);
    }
  });

  test('types that are no data are errors, mail addresses of old not implemented', () => {
    for (const type of [41, 128, 249]) assert.equal(ask(zones, { name: four, type }).code, 1, String(type));
    for (const type of ['MAILA', 'MAILB']) assert.equal(ask(zones, { name: four, type }).code, 4, type);
  });
});

describe('messages', () => {
  test('answers and stumps get no answer', () => {
    const query = queryOctets({ name: `7.${four}` });
    for (let length = 0; length < 12; length += 1) {
      assert.equal(answerMessage(zones, query.subarray(0, length), udp).kind, 'none');
    }
    const answer = Buffer.from(query);
    answer.writeUInt16BE(0x8000, 2);
    assert.equal(answerMessage(zones, answer, udp).kind, 'none');
  });

  test('a broken message gets a format error with its identifier', () => {
    const query = queryOctets({ name: `7.${four}`, id: 99, edns: { udpBytes: 1232 } });
    const change = (at: number, value: number) => {
      const changed = Buffer.from(query);
      changed.writeUInt16BE(value, at);
      return changed;
    };
    const broken: [string, Buffer][] = [
      ['no question', change(4, 0)],
      ['two questions', change(4, 2)],
      ['a record too many', change(6, 1)],
      ['cut off in the name', query.subarray(0, 15)],
      ['cut off in the type', query.subarray(0, 12 + 26)],
      ['cut off in OPT', query.subarray(0, query.length - 1)],
      ['an octet too many', Buffer.concat([query, Buffer.alloc(1)])],
      ['a pointer in the question', change(12, 0xc00c)],
      ['a label of another kind', change(12, 0x4130)],
      ['two OPT', Buffer.concat([change(10, 2), query.subarray(-11)])],
      [
        'OPT in the answer section',
        (() => {
          const moved = change(10, 0);
          moved.writeUInt16BE(1, 6);
          return moved;
        })(),
      ],
    ];
    for (const [what, message] of broken) {
      const given = answerMessage(zones, message, udp);
      assert.ok(given.kind === 'format_error', `${what}: ${given.kind}`);
      const read = readAnswer(given.octets);
      assert.deepEqual([read.code, read.id, read.answers], [1, 99, []], what);
    }
  });

  test('a question comes back to the letter', () => {
    const letters = fc.constantFrom(...'aAbBzZ019-_/');
    const label = fc.array(letters, { minLength: 1, maxLength: 12 }).map((all) => all.join(''));
    fc.assert(
      fc.property(fc.array(label, { maxLength: 6 }), fc.nat(0xffff), (labels, id) => {
        const message = queryOctets({ name: [...labels, '113.0.203.In-aDDr.arpa'].join('.'), id });
        const given = answerMessage(zones, message, udp);
        assert.ok(given.kind !== 'none' && given.kind !== 'transfer');
        assert.deepEqual(given.octets.subarray(12, message.length), message.subarray(12));
      }),
    );
  });
});

describe('EDNS', () => {
  test('is answered with EDNS, the DO bit as asked, and what we take', () => {
    for (const dnssecOk of [false, true]) {
      const read = ask(zones, { name: `8.${four}`, edns: { udpBytes: 4096, dnssecOk } });
      assert.deepEqual([read.code, read.edns], [3, { udpBytes: 1232, dnssecOk }]);
    }
  });

  test('another version is told that ours is 0', () => {
    const read = ask(zones, { name: `7.${four}`, edns: { udpBytes: 1232, version: 1 } });
    assert.deepEqual([read.code, read.answers], [16, []]);
  });

  test('an error has it as well', () => {
    assert.deepEqual(ask(zones, { name: 'example.net', edns: { udpBytes: 1232 } }).edns?.udpBytes, 1232);
  });
});

describe('size', () => {
  const names = Array.from({ length: 60 }, (_, index) => `${'n'.repeat(50)}.${index}.example.net`);
  const large = served([zoneSettings(four, { nameservers: names }), []]);

  test('over UDP it is what the client takes, at most 1232 octets; beyond it nothing but a hint to come over TCP', () => {
    for (const [edns, limit] of [
      [undefined, 512],
      [{ udpBytes: 100 }, 512],
      [{ udpBytes: 700 }, 700],
      [{ udpBytes: 65_535 }, 1232],
    ] as const) {
      const read = ask(large, { name: four, type: 'NS', ...(edns && { edns }) });
      assert.deepEqual([read.code, read.flags.tc, read.flags.aa, read.answers], [0, true, true, []]);
      assert.equal(read.edns !== undefined, edns !== undefined);
      assert.ok(read.length <= limit);
    }
    assert.equal(ask(large, { name: four, type: 'NS' }, tcp).answers.length, 60);
  });

  test('an answer that just fits is whole, one octet more is not', () => {
    for (let count = 1; count <= names.length; count += 1) {
      const some = served([zoneSettings(four, { nameservers: names.slice(0, count) }), []]);
      const whole = ask(some, { name: four, type: 'NS' }, tcp).length;
      assert.equal(ask(some, { name: four, type: 'NS' }).flags.tc, whole > 512, `${whole} octets`);
      const edns = { udpBytes: 1232 };
      assert.equal(ask(some, { name: four, type: 'NS', edns }).flags.tc, whole + 11 > 1232, `${whole} octets and OPT`);
    }
  });
});

describe('transfers', () => {
  const from = (address: string, transport: 'udp' | 'tcp' = 'tcp') => ({ transport, address });

  test('the zone goes to its secondaries alone, and over TCP alone', () => {
    const asked = { name: four, type: 'AXFR' };
    assert.equal(reply(zones, asked, from(secondary)).kind, 'transfer');
    assert.equal(reply(zones, asked, from('192.0.2.54')).kind, 'refused');
    assert.equal(reply(zones, asked, from(secondary, 'udp')).kind, 'format_error');
    for (const name of [six, `7.${four}`, 'example.net', '203.in-addr.arpa']) {
      assert.equal(reply(zones, { name, type: 'AXFR' }, from(secondary)).kind, 'refused', name);
    }
  });

  test('an IXFR gets the whole zone, or word that there is nothing new', () => {
    const ixfr = (serial: number, transport: 'udp' | 'tcp' = 'tcp', address = secondary) =>
      reply(zones, { name: four, type: 'IXFR', serial }, from(address, transport));
    assert.equal(ixfr(0).kind, 'transfer');
    // 2^31 and more ahead is behind (RFC 1982).
    assert.equal(ixfr(0xffff_fff0).kind, 'transfer');
    assert.equal(ixfr(0, 'tcp', '192.0.2.54').kind, 'refused');
    for (const [serial, transport] of [
      [1, 'tcp'],
      [2, 'tcp'],
      [1, 'udp'],
      [0, 'udp'],
    ] as const) {
      const given = ixfr(serial, transport);
      assert.ok(given.kind === 'answer');
      assert.deepEqual(readAnswer(given.octets).answers, [`${four} 300 SOA ${soa}`]);
    }
    assert.equal(reply(zones, { name: four, type: 'IXFR' }, from(secondary)).kind, 'format_error');
  });

  test('serials are compared as on a circle', () => {
    const cases = [
      [1, 0, true],
      [0, 1, false],
      [0, 0xffff_ffff, true],
      [5, 5, false],
      [0x7fff_ffff, 0, true],
      [0x8000_0001, 0, false],
    ] as const;
    for (const [serial, than, newer] of cases) assert.equal(isNewer(serial, than), newer, `${serial} ${than}`);
  });
});

/** A TSIG record behind the question (RFC 8945, 4.2). */
function signed(question: string, keyName: string): Buffer {
  const plain = queryOctets({ name: question, type: 'SOA', id: 7 });
  plain.writeUInt16BE(1, 10);
  const wire = (name: string) =>
    Buffer.concat(
      name
        .split('.')
        .map((label) => Buffer.from(`\0${label}`))
        .map(withLength),
    );
  const data = Buffer.concat([
    wire('hmac-sha256'),
    Buffer.alloc(1),
    // Time signed, fudge, size of the MAC.
    Buffer.from('000061234567012c0020', 'hex'),
    Buffer.alloc(32, 9),
    // Identifier, error, size of what else there is.
    Buffer.from('000700000000', 'hex'),
  ]);
  const head = Buffer.from('00fa00ff000000000000', 'hex');
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([plain, wire(keyName), Buffer.alloc(1), head, data]);
}

function withLength(label: Buffer): Buffer {
  label[0] = label.length - 1;
  return label;
}

test('a signed query is told that the key is not known, within the size that the client takes', () => {
  const given = answerMessage(zones, signed(four, 'some.key'), udp);
  assert.ok(given.kind === 'not_authoritative');
  const read = readAnswer(given.octets);
  assert.deepEqual([read.code, read.answers], [9, []]);
  // Fudge, no MAC, the identifier, error 17 (BADKEY), nothing else.
  assert.equal(given.octets.subarray(-10).toString('hex'), '012c0000000700110000');
  const long = [63, 63, 63, 61].map((length) => 'k'.repeat(length)).join('.');
  const tight = answerMessage(zones, signed(long, long), udp);
  assert.ok(tight.kind === 'not_authoritative');
  assert.ok(tight.octets.length <= 512);
  assert.equal(readAnswer(tight.octets).code, 9);
});

test('over the limit a query is told to come over TCP and nothing else, in no more octets than it has', () => {
  for (const edns of [undefined, { udpBytes: 1232 }]) {
    const message = queryOctets({ name: `7.${four}`, ...(edns && { edns }) });
    const given = answerMessage(zones, message, { ...udp, truncate: true });
    assert.ok(given.kind === 'answer' && given.truncated);
    const read = readAnswer(given.octets);
    assert.deepEqual([read.flags.tc, read.answers, read.authorities], [true, [], []]);
    assert.equal(given.octets.length, message.length);
  }
});
