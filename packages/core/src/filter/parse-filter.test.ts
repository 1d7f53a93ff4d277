import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterFields } from './filter.ts';
import { wireguard } from './kinds/wireguard.ts';
import { parseFilter } from './parse-filter.ts';

const identity = { uuid: '0190b5b0-0000-7000-8000-000000000001', sequence: 1 };
const base = { dst: '203.0.113.7', filter: 20 };

function accepted(wire: unknown) {
  const parsed = parseFilter(wire, identity);
  assert.ok(parsed.ok, parsed.ok ? '' : JSON.stringify(parsed.problems));
  return parsed;
}

function problemsOf(wire: unknown) {
  const parsed = parseFilter(wire, identity);
  assert.ok(!parsed.ok, 'was accepted');
  return parsed.problems;
}

test('the two required fields make a filter with the default priority', () => {
  const { filter, canonical } = accepted(base);
  assert.deepEqual(canonical, { ...base, priority: 1000 });
  assert.deepEqual(filter, {
    ...identity,
    dst: { family: 4, value: 0xcb007107n, length: 32 },
    kind: wireguard,
    priority: 1000,
  });
});

test('every field arrives in the filter and, canonical and in fixed order, in what is stored', () => {
  const { filter, canonical } = accepted({
    ratelimit: 25000,
    port: { dst: { start: 51820, end: 51830 }, src: { start: 1024 } },
    src: { start: '2001:DB8:0:0::/33' },
    priority: 2147483647,
    filter: 20,
    dst: '2001:0DB8:0:0:0::/48',
  });
  assert.deepEqual(canonical, {
    dst: '2001:db8::/48',
    filter: 20,
    priority: 2147483647,
    src: { start: '2001:db8::/33' },
    port: { src: { start: 1024 }, dst: { start: 51820, end: 51830 } },
    ratelimit: 25000,
  });
  assert.deepEqual(Object.keys(canonical), [...filterFields]);
  assert.deepEqual(filter, {
    ...identity,
    dst: { family: 6, value: 0x20010db8n << 96n, length: 48 },
    kind: wireguard,
    priority: 2147483647,
    src: { family: 6, start: 0x20010db8n << 96n, end: (0x20010db8n << 96n) | ((1n << 95n) - 1n) },
    sourcePorts: { start: 1024, end: 1024 },
    destinationPorts: { start: 51820, end: 51830 },
    rateLimitMegabitsPerSecond: 25000,
  });
});

const ids = '1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29';
const whereKindsStand = 'GET /filter/kind describes the kinds';
const needed =
  "port.dst: is required by rtp (28), which has no port of its own: the destination's ports to look at" as const;

/** What is sent, and every problem of it: field, code, message (absent: another reader's, tested there). */
const refused: readonly (readonly [object, ...(readonly [string, string, string?])[]])[] = [
  [
    {},
    [
      '/dst',
      'required',
      'dst: is required: the address or subnet that the filter protects, such as 203.0.113.7 or 2001:db8::/48',
    ],
    ['/filter', 'required', `filter: is required: the id of a kind of filter; ${whereKindsStand}`],
  ],
  [
    { ...base, filter: 99 },
    ['/filter', 'unknown_kind', `filter: must be the id of a kind, one of ${ids}, received 99; ${whereKindsStand}`],
  ],
  [
    { ...base, filter: 20.5 },
    ['/filter', 'unknown_kind', `filter: must be the id of a kind, one of ${ids}, received 20.5; ${whereKindsStand}`],
  ],
  [
    { ...base, filter: 'WireGuard ' },
    [
      '/filter',
      'wrong_type',
      `filter: must be the id of a kind, one of ${ids}, received the string "WireGuard "; did you mean 20 (wireguard)?`,
    ],
  ],
  [
    { ...base, filter: '20' },
    [
      '/filter',
      'wrong_type',
      `filter: must be the id of a kind, one of ${ids}, received the string "20"; did you mean 20 (wireguard)?`,
    ],
  ],
  [
    { ...base, filter: null },
    ['/filter', 'wrong_type', `filter: must be the id of a kind, one of ${ids}, received null; ${whereKindsStand}`],
  ],
  [{ ...base, dst: '203.0.113.7/24' }, ['/dst', 'host_bits_set']],
  [{ ...base, dst: 7 }, ['/dst', 'wrong_type']],
  [
    { dst: '2001:db8::7', filter: 16 },
    ['/dst', 'family_not_supported', 'dst: 2001:db8::7 is IPv6; samp (16) protects IPv4 only'],
  ],
  [
    { dst: '203.0.112.0/23', filter: 16 },
    [
      '/dst',
      'prefix_too_short',
      'dst: 203.0.112.0/23 holds too many addresses for samp (16); it takes a /24 or longer',
    ],
  ],
  [
    { dst: base.dst, filter: 4, port: { dst: { start: 7 } } },
    ['/port', 'kind_without_ports', 'port: is not used by icmp-limit (4): icmp has no ports; leave it out'],
  ],
  [{ dst: base.dst, filter: 28 }, ['/port/dst', 'required', needed]],
  [{ dst: base.dst, filter: 28, port: { src: { start: 5000 } } }, ['/port/dst', 'required', needed]],
  [{ dst: base.dst, filter: 28, port: { dst: { start: 70_000 } } }, ['/port/dst/start', 'out_of_range']],
  [{ dst: base.dst, filter: 28, port: 5000 }, ['/port', 'wrong_type']],
  [{ dst: base.dst, filter: 28, port: {} }, ['/port', 'empty']],
  [{ ...base, port: { dst: { start: 9, end: 3 } } }, ['/port/dst', 'start_after_end']],
  [{ ...base, port: { dst: { start: 9, step: 3 } } }, ['/port/dst/step', 'unknown_field']],
  [{ ...base, src: { start: '192.0.2.9', end: '192.0.2.3' } }, ['/src', 'start_after_end']],
  [
    { ...base, src: { start: '2001:db8::1' } },
    ['/src', 'mixed_families', 'src: is IPv6 and dst 203.0.113.7 is IPv4; both must be of one family'],
  ],
  [
    { ...base, ratelimit: 0 },
    ['/ratelimit', 'out_of_range', 'ratelimit: must be an integer from 1 to 25000, received 0'],
  ],
  [{ ...base, ratelimit: 25001 }, ['/ratelimit', 'out_of_range']],
  [{ ...base, ratelimit: '500' }, ['/ratelimit', 'wrong_type']],
  [{ ...base, priority: 0 }, ['/priority', 'out_of_range']],
  [{ ...base, priority: null }, ['/priority', 'wrong_type']],
  [
    { ...base, action: 'drop' },
    [
      '/action',
      'unknown_field',
      'action: is not a known field; allowed are dst, filter, priority, src, port, ratelimit, expires_at',
    ],
  ],
  [
    {
      dst: '203.0.113.7/24',
      filter: 5,
      priority: 'high',
      src: {},
      port: { dst: { start: 'x' } },
      ratelimit: 0,
      colour: 1,
    },
    ['/colour', 'unknown_field'],
    ['/dst', 'host_bits_set'],
    ['/filter', 'unknown_kind'],
    ['/priority', 'wrong_type'],
    ['/src/start', 'required'],
    ['/port/dst/start', 'wrong_type'],
    ['/ratelimit', 'out_of_range'],
  ],
];

for (const [wire, ...wanted] of refused) {
  test(`refused with every problem at once: ${JSON.stringify(wire)}`, () => {
    const parsed = parseFilter(wire, identity, ['expires_at']);
    assert.ok(!parsed.ok, 'was accepted');
    assert.deepEqual(
      parsed.problems.map(({ field, code }) => [field, code]),
      wanted.map(([field, code]) => [field, code]),
    );
    for (const [index, [, , message]] of wanted.entries()) {
      if (message !== undefined) assert.equal(parsed.problems[index]?.message, message);
    }
  });
}

test('what is no object is refused as such', () => {
  for (const wire of [null, undefined, 7, 'x', []]) assert.equal(problemsOf(wire)[0]?.code, 'wrong_type');
});

test('a kind that must be told its ports takes them, and a limit holds from where it is said', () => {
  const ports = { dst: { start: 10_000, end: 20_000 } };
  assert.deepEqual(accepted({ dst: base.dst, filter: 28, port: ports }).canonical.port, ports);
  assert.equal(accepted({ dst: '203.0.113.0/24', filter: 16 }).canonical.dst, '203.0.113.0/24');
});
