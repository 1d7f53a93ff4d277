/** What a decoder remembers between datagrams: templates, sampling, sets that wait; and that it forgets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDecoder, type Decoder } from './decoder.ts';
import {
  destination4,
  type Fields,
  ipfix,
  netflow9,
  optionsTemplate,
  optionsTemplate9,
  set,
  source4,
  template,
  u8,
  u16,
  u32,
  u64,
} from './testing/build.ts';
import { copyRecord, emptyCounts, type ReadRecord } from './testing/decode-all.ts';

const plain: Fields = [
  [8, 4],
  [12, 4],
  [1, 4],
  [2, 4],
];
const flow = (octets = 600) => Buffer.concat([source4, destination4, u32(octets, 1)]);
const known = set(2, template(256, plain));
const data = set(256, flow());

class Exchange {
  readonly decoder: Decoder;
  readonly counts = new Map<number, ReturnType<typeof emptyCounts>>();
  constructor(limits: Parameters<typeof createDecoder>[0] = {}) {
    this.decoder = createDecoder(limits);
  }

  put(datagram: Buffer, { exporter = 1, nowMs = 0 } = {}): ReadRecord[] {
    const records: ReadRecord[] = [];
    const counts = this.counts.get(exporter) ?? emptyCounts();
    this.counts.set(exporter, counts);
    this.decoder.decode(datagram, datagram.length, exporter, nowMs, counts, (record) =>
      records.push(copyRecord(record)),
    );
    return records;
  }

  dropped(exporter = 1): Record<string, number> {
    return this.counts.get(exporter)?.dropped ?? {};
  }
}

test("a template is one exporter's, one domain's, and of NetFlow v9 or IPFIX", () => {
  const exchange = new Exchange();
  assert.equal(exchange.put(ipfix([known])).length, 0);
  assert.equal(exchange.put(ipfix([data])).length, 1);
  assert.equal(exchange.put(ipfix([data], { domain: 8 })).length, 0);
  assert.equal(exchange.put(ipfix([data]), { exporter: 2 }).length, 0);
  assert.equal(exchange.put(netflow9([data], { source: 7 })).length, 0);
  assert.deepEqual([exchange.decoder.templates(1), exchange.decoder.templates(2)], [1, 0]);
});

test('a template that is told anew with other fields is another one from there on', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([known]));
  exchange.put(
    ipfix([
      set(
        2,
        template(256, [
          [12, 4],
          [8, 4],
          [2, 4],
          [1, 4],
        ]),
      ),
    ]),
  );
  const [record] = exchange.put(ipfix([set(256, destination4, source4, u32(3, 900))]));
  assert.deepEqual([record?.destination, record?.packets, record?.bytes], ['203.0.113.9', 3, 900]);
  assert.equal(exchange.decoder.templates(1), 1);
});

test("a number of options' template is taken by a template of data, and the other way round", () => {
  const exchange = new Exchange();
  exchange.put(
    ipfix([
      set(
        3,
        optionsTemplate(
          256,
          [[143, 4]],
          [
            [34, 4],
            [2, 4],
            [1, 4],
          ],
        ),
      ),
    ]),
  );
  assert.equal(exchange.put(ipfix([data])).length, 0);
  exchange.put(ipfix([known]));
  assert.equal(exchange.put(ipfix([data])).length, 1);
});

for (const [what, withdrawal, left] of [
  ['by its number', set(2, u16(256, 0)), 2],
  ['with all templates of data', set(2, u16(2, 0)), 1],
  ['with all templates of options, which it is not', set(3, u16(3, 0)), 2],
] as const) {
  test(`a template that is withdrawn ${what}: ${left} of three are left`, () => {
    const exchange = new Exchange();
    const options = set(3, optionsTemplate(512, [[143, 4]], [[34, 4]]));
    exchange.put(ipfix([known, set(2, template(257, plain)), options]));
    exchange.put(ipfix([withdrawal]));
    assert.equal(exchange.decoder.templates(1), left);
    assert.deepEqual(exchange.dropped(), {});
  });
}

test('a template that is not told again for its time is none any more; told again it stays', () => {
  const exchange = new Exchange({ templateMilliseconds: 1000 });
  exchange.put(ipfix([known]), { nowMs: 0 });
  exchange.put(ipfix([known]), { nowMs: 900 });
  assert.equal(exchange.put(ipfix([data]), { nowMs: 1900 }).length, 1);
  assert.equal(exchange.put(ipfix([data]), { nowMs: 1901 }).length, 0);
  assert.equal(exchange.decoder.templates(1), 0);
});

test('the template that was told longest ago makes room, counted, and no exporter takes it from another', () => {
  const exchange = new Exchange({ mostTemplates: 6, mostTemplatesPerExporter: 4 });
  for (let id = 256; id < 260; id += 1) exchange.put(ipfix([set(2, template(id, plain))]));
  exchange.put(ipfix([known]));
  exchange.put(ipfix([set(2, template(300, plain))]));
  assert.deepEqual(exchange.dropped(), { template_evicted: 1 });
  assert.equal(exchange.put(ipfix([data])).length, 1, '256 was told again');
  assert.equal(exchange.put(ipfix([set(257, flow())])).length, 0, '257 went');
  for (let id = 256; id < 266; id += 1) exchange.put(ipfix([set(2, template(id, plain))]), { exporter: 2 });
  assert.deepEqual([exchange.decoder.templates(1), exchange.decoder.templates(2)], [4, 2]);
});

test('domains are bounded: the oldest of the exporter goes with all that is known of it', () => {
  const exchange = new Exchange({ mostDomainsPerExporter: 3 });
  for (let domain = 0; domain < 5; domain += 1) exchange.put(ipfix([known], { domain }));
  assert.deepEqual([exchange.decoder.holdings().domains, exchange.decoder.templates(1)], [3, 3]);
  assert.deepEqual(exchange.dropped(), { template_evicted: 2 });
  assert.equal(exchange.put(ipfix([data], { domain: 4 })).length, 1);
});

test('a domain in use keeps its templates, however many others the same address names', () => {
  const exchange = new Exchange({ mostDomainsPerExporter: 3 });
  exchange.put(ipfix([known], { domain: 1 }));
  exchange.put(ipfix([known], { domain: 2 }));
  exchange.put(ipfix([data], { domain: 1 }));
  for (let domain = 3; domain < 5; domain += 1) exchange.put(ipfix([known], { domain }));
  assert.equal(exchange.put(ipfix([data], { domain: 1 })).length, 1, 'of 1 and 2, 2 was used longer ago');
  for (let i = 0; i < 20; i += 1) exchange.put(ipfix([data], { domain: 1 }));
  for (let domain = 5; domain < 300; domain += 1) exchange.put(ipfix([known], { domain }));
  assert.equal(exchange.put(ipfix([data], { domain: 1 })).length, 1, 'a busy one, after a flood of others');
  const nowMs = 3_600_000;
  for (let domain = 300; domain < 304; domain += 1) exchange.put(ipfix([known], { domain }), { nowMs });
  assert.equal(exchange.put(ipfix([data], { domain: 1 }), { nowMs }).length, 0, 'not after an hour of silence');
});

test('a template whose every octet costs hundreds of fields is read as far as its datagram is long, and told', () => {
  const exchange = new Exchange();
  const nothing = Array.from({ length: 250 }, () => [5000, 0]);
  exchange.put(ipfix([set(2, template(300, [...plain, [6000, 0xffff], ...nothing]))]));
  const records = Array.from({ length: 800 }, () => Buffer.concat([flow(), u8(0)]));
  const read = exchange.put(ipfix([set(300, ...records)])).length;
  assert.ok(read > 40 && read < 130, `${read}`);
  assert.deepEqual(exchange.dropped(), { records_costly: 1 });
});

test('a sampling rate that no exporter has is not used and told, by options or by the product of selectors', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([known, set(3, optionsTemplate(512, [[149, 4]], [[34, 4]]))]));
  const ratesAfter = (told: number) => {
    exchange.put(ipfix([set(512, u32(7, told))]));
    return exchange.put(ipfix([data])).map(({ samplingRate }) => samplingRate);
  };
  assert.deepEqual(
    [ratesAfter(16_777_216), ratesAfter(16_777_217), ratesAfter(0xffff_ffff)],
    [[16_777_216], [16_777_216], [16_777_216]],
  );
  assert.deepEqual(exchange.dropped(), { value_absurd: 2 });
  const other = new Exchange();
  other.put(ipfix([selections, selectors, set(515, u64(77), u32(1, 20, 21))]));
  other.put(ipfix([set(513, u32(20), u16(1), u32(1, 8191), u32(21), u16(1), u32(1, 4095))]));
  assert.deepEqual(rates(other, record(1, 0, 77)), [0]);
});

test('data ahead of its template waits for it, and then comes spread over the time that it waited', () => {
  const exchange = new Exchange();
  const earlier = ipfix([data, set(256, flow(700))]);
  assert.deepEqual(exchange.put(earlier, { nowMs: 1000 }), []);
  earlier.fill(0);
  exchange.put(ipfix([data]), { nowMs: 3000 });
  const records = exchange.put(ipfix([known, set(256, flow(800))]), { nowMs: 6000 });
  assert.deepEqual(
    records.map(({ bytes, durationMilliseconds }) => [bytes, durationMilliseconds]),
    [
      [600, 5000],
      [700, 5000],
      [600, 5000],
      [800, 0],
    ],
  );
  assert.deepEqual([exchange.decoder.holdings().heldOctets, exchange.dropped()], [0, {}]);
});

test('data whose template does not come in time is counted at its exporter, whoever sends next', () => {
  const exchange = new Exchange({ heldMilliseconds: 1000 });
  exchange.put(ipfix([data, data]), { nowMs: 0 });
  exchange.put(ipfix([data]), { nowMs: 600 });
  exchange.put(ipfix([known]), { exporter: 2, nowMs: 1001 });
  assert.deepEqual([exchange.dropped(1), exchange.dropped(2)], [{ template_missing: 2 }, {}]);
  assert.equal(exchange.put(ipfix([known]), { nowMs: 1002 }).length, 1);
  assert.equal(exchange.decoder.holdings().heldOctets, 0);
});

test('what waits is bounded, for one exporter and for all', () => {
  const exchange = new Exchange({ mostHeldOctets: 3000, mostHeldOctetsPerExporter: 1000 });
  const big = ipfix([set(256, Buffer.alloc(400, 1))]);
  for (let exporter = 1; exporter <= 8; exporter += 1) {
    for (let round = 0; round < 4; round += 1) exchange.put(big, { exporter });
  }
  const kept = [1, 2, 3, 4, 5, 6, 7, 8].map((exporter) => 4 - (exchange.dropped(exporter).template_missing ?? 0));
  assert.deepEqual(kept, [1, 1, 1, 1, 0, 0, 0, 0]);
  assert.ok(exchange.decoder.holdings().heldOctets <= 3000);
});

test('room that waiting data took is there again when its template came, or did not', () => {
  const exchange = new Exchange({ mostHeldOctetsPerExporter: 1000, heldMilliseconds: 1000 });
  let records = 0;
  for (let round = 0; round < 10; round += 1) {
    const nowMs = round * 10_000;
    exchange.put(ipfix([set(300, Buffer.alloc(500, 1))]), { nowMs });
    exchange.put(ipfix([data]), { nowMs: nowMs + 2000 });
    records += exchange.put(ipfix([known]), { nowMs: nowMs + 2500 }).length;
    exchange.put(ipfix([set(2, u16(256, 0))]), { nowMs: nowMs + 2600 });
  }
  assert.deepEqual([records, exchange.dropped()], [10, { template_missing: 10 }]);
});

test('a forgotten exporter is as one that never sent', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([known, set(300, flow())]));
  exchange.decoder.forget(1);
  assert.deepEqual([exchange.decoder.templates(1), exchange.decoder.holdings().heldOctets], [0, 0]);
  assert.equal(exchange.put(ipfix([data])).length, 0);
  exchange.decoder.forget(99);
});

const sampled: Fields = [...plain, [10, 4], [302, 4], [301, 8]];
const told = set(2, template(256, sampled));
const record = (input: number, selector = 0, selection = 0) =>
  Buffer.concat([flow(), u32(input, selector), u64(selection)]);
const rates = (exchange: Exchange, ...records: Buffer[]) =>
  exchange.put(ipfix([told, set(256, ...records)])).map(({ samplingRate }) => samplingRate);

const ways: readonly [string, Fields, Buffer, number][] = [
  [
    'an interval (34)',
    [
      [34, 4],
      [35, 1],
    ],
    Buffer.concat([u32(1000), u8(2)]),
    1000,
  ],
  [
    'a random interval (50)',
    [
      [49, 1],
      [50, 4],
    ],
    Buffer.concat([u8(2), u32(64)]),
    64,
  ],
  [
    'one packet, then 15 not (305, 306)',
    [
      [305, 4],
      [306, 4],
    ],
    u32(1, 15),
    16,
  ],
  [
    '4 packets, then 60 not',
    [
      [305, 4],
      [306, 4],
    ],
    u32(4, 60),
    16,
  ],
  [
    'one packet, then none not',
    [
      [305, 4],
      [306, 4],
    ],
    u32(1, 0),
    1,
  ],
  ['one of 100 by 305 alone', [[305, 4]], u32(100), 100],
  [
    'time (307, 308)',
    [
      [307, 4],
      [308, 4],
    ],
    u32(10, 990),
    100,
  ],
  [
    'n of N (309, 310)',
    [
      [309, 4],
      [310, 4],
    ],
    u32(2, 256),
    128,
  ],
  ['a probability of eight octets (311)', [[311, 8]], Buffer.from('3f50000000000000', 'hex'), 1024],
  ['a probability of four octets', [[311, 4]], Buffer.from('3a800000', 'hex'), 1024],
  ['an interval of 0', [[34, 4]], u32(0), 0],
  ['a probability that is none', [[311, 8]], Buffer.from('7ff8000000000000', 'hex'), 0],
  ['an interval past 2^32', [[34, 8]], u64(2 ** 40), 0],
  ['names of interfaces', [[82, 4]], u32(0x65746831), 0],
];

for (const [what, fields, content, rate] of ways) {
  test(`sampling that options tell by ${what}: ${rate}`, () => {
    const exchange = new Exchange();
    exchange.put(ipfix([set(3, optionsTemplate(512, [[143, 4]], fields)), set(512, u32(1), content)]));
    assert.deepEqual(rates(exchange, record(1)), [rate]);
  });
}

const interfaces = set(3, optionsTemplate(512, [[10, 4]], [[34, 4]]));
const selectors = set(
  3,
  optionsTemplate(
    513,
    [[302, 4]],
    [
      [304, 2],
      [305, 4],
      [306, 4],
    ],
  ),
);
const domains = set(3, optionsTemplate(514, [[149, 4]], [[34, 4]]));
const selections = set(
  3,
  optionsTemplate(
    515,
    [[301, 8]],
    [
      [138, 4],
      [302, 4],
      [302, 4],
    ],
  ),
);

test('of interfaces, selectors and the domain the narrowest that was told counts', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([interfaces, selectors, domains, set(512, u32(3, 300, 4, 400)), set(514, u32(7, 70))]));
  exchange.put(ipfix([set(513, u32(9), u16(1), u32(1, 89))]));
  assert.deepEqual(
    rates(exchange, record(3), record(4), record(5), record(3, 9), record(5, 9)),
    [300, 400, 70, 90, 90],
  );
});

test('of selectors that differ none is guessed; of one, or several alike, it is that', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([selectors, set(513, u32(9), u16(1), u32(1, 89))]));
  assert.deepEqual(rates(exchange, record(1)), [90]);
  exchange.put(ipfix([set(513, u32(10), u16(1), u32(1, 89))]));
  assert.deepEqual(rates(exchange, record(1)), [90]);
  exchange.put(ipfix([set(513, u32(11), u16(1), u32(1, 9))]));
  assert.deepEqual(rates(exchange, record(1), record(1, 11)), [0, 10]);
});

test('a packet that passed several selectors stands for their product (RFC 5476), a filter among them for one', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([selections, selectors, set(515, u64(77), u32(1, 20, 21), u64(78), u32(1, 22, 21))]));
  exchange.put(ipfix([set(513, u32(20), u16(1), u32(1, 9), u32(21), u16(1), u32(1, 4), u32(22), u16(5), u32(0, 0))]));
  assert.deepEqual(rates(exchange, record(1, 0, 77), record(1, 0, 78)), [50, 5]);
});

test('what is told of another domain, or in one, serves domains that nothing was told of', () => {
  const exchange = new Exchange();
  exchange.put(ipfix([told], { domain: 8 }));
  exchange.put(ipfix([domains, set(514, u32(8, 80))]));
  const rateOf = (domain: number) =>
    exchange.put(ipfix([told, set(256, record(1))], { domain })).map(({ samplingRate }) => samplingRate);
  assert.deepEqual([rateOf(8), rateOf(9)], [[80], [80]]);
  exchange.put(ipfix([domains, set(514, u32(7, 70))]));
  assert.deepEqual([rateOf(7), rateOf(8)], [[70], [80]]);
});

test('sampling of one template is of that template alone', () => {
  const exchange = new Exchange();
  const options = set(3, optionsTemplate(512, [[145, 2]], [[34, 4]]));
  exchange.put(ipfix([told, set(2, template(257, plain)), options, set(512, u16(257), u32(33))]));
  assert.deepEqual(
    exchange.put(ipfix([set(257, flow())])).map(({ samplingRate }) => samplingRate),
    [33],
  );
  assert.deepEqual(rates(exchange, record(1)), [0]);
});

test('NetFlow v9: options by system, by interface and by sampler', () => {
  const exchange = new Exchange();
  const nine: Fields = [...plain, [10, 2], [48, 1]];
  const put = (...sets: Buffer[]) => exchange.put(netflow9(sets)).map(({ samplingRate }) => samplingRate);
  put(
    set(0, template(256, nine)),
    set(
      1,
      optionsTemplate9(
        512,
        [[1, 4]],
        [
          [34, 4],
          [35, 1],
        ],
      ),
    ),
    set(512, u32(0, 10), u8(1)),
  );
  put(set(1, optionsTemplate9(513, [[2, 4]], [[34, 4]])), set(513, u32(3, 30)));
  put(
    set(
      1,
      optionsTemplate9(
        514,
        [[1, 4]],
        [
          [48, 1],
          [49, 1],
          [50, 4],
        ],
      ),
    ),
    set(514, u32(0), u8(5, 2), u32(50)),
  );
  const each = (input: number, sampler: number) => Buffer.concat([flow(), u16(input), u8(sampler)]);
  assert.deepEqual(put(set(256, each(1, 0), each(3, 0), each(3, 5))), [10, 30, 50]);
});

test('more interfaces than are kept forget the oldest', () => {
  const exchange = new Exchange();
  const many = Array.from({ length: 600 }, (_, index) => u32(index + 1, index + 2));
  exchange.put(ipfix([interfaces, set(512, ...many)]));
  assert.deepEqual(rates(exchange, record(600), record(1)), [601, 0]);
});
