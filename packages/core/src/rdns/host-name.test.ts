import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseHostName } from './host-name.ts';

const label63 = 'a'.repeat(63);

for (const [text, name] of [
  ['mail.example.net', 'mail.example.net'],
  ['Mail.Example.NET.', 'mail.example.net'],
  ['localhost', 'localhost'],
  ['1.example', '1.example'],
  ['4.4.8.8.example.1a', '4.4.8.8.example.1a'],
  ['r3---sn-a.example', 'r3---sn-a.example'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['BÜCHER.example', 'xn--bcher-kva.example'],
  ['faß.example', 'xn--fa-hia.example'],
  ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  [`${label63}.${label63}.${label63}.${'a'.repeat(61)}`, `${label63}.${label63}.${label63}.${'a'.repeat(61)}`],
] as const) {
  test(`${text.slice(0, 40)} is read as ${name.slice(0, 40)}`, () => {
    assert.deepEqual(parseHostName(text), { ok: true, name });
  });
}

for (const [text, code, said] of [
  ['', 'invalid_host_name', 'empty label'],
  ['.', 'invalid_host_name', 'empty label'],
  ['mail..example.net', 'invalid_host_name', 'empty label'],
  ['mail.example.net..', 'invalid_host_name', 'empty label'],
  ['_dmarc.example.net', 'invalid_host_name', 'underscore'],
  ['mail example.net', 'invalid_host_name', 'holds " "'],
  ['mail\n.example.net', 'invalid_host_name', 'holds "\\n"'],
  ['ex%41mple.net', 'invalid_host_name', 'holds "%"'],
  ['*.example.net', 'invalid_host_name', 'holds "*"'],
  ['-mail.example.net', 'invalid_host_name', 'dash'],
  ['mail-.example.net', 'invalid_host_name', 'dash'],
  ['ü_x.example', 'invalid_host_name', 'underscore'],
  [`${label63}a.example`, 'invalid_host_name', '64 characters'],
  [`${label63}.${label63}.${label63}.${'a'.repeat(62)}`, 'too_long', '254 characters'],
  ['203.0.113.7', 'numeric_top_label', 'ends in a number'],
  ['１.２.３.４', 'invalid_host_name', 'no letter'],
  ['example.123', 'numeric_top_label', 'ends in a number'],
] as const) {
  test(`${JSON.stringify(text).slice(0, 40)} is refused as ${code}`, () => {
    const read = parseHostName(text);
    assert.ok(!read.ok);
    assert.equal(read.code, code);
    assert.ok(read.sentence.includes(said), read.sentence);
  });
}

test('what is accepted is letters, digits, dashes within the limits, and is read back as itself', () => {
  const wild = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 80 }),
    fc
      .array(fc.string({ unit: fc.constantFrom(...'abz09-ü例.'), minLength: 1, maxLength: 20 }))
      .map((of) => of.join('.')),
    fc.domain(),
  );
  fc.assert(
    fc.property(wild, (text) => {
      const read = parseHostName(text);
      if (!read.ok) return;
      assert.match(
        read.name,
        /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
      );
      assert.deepEqual(parseHostName(read.name), read);
    }),
    { numRuns: 3000 },
  );
});
