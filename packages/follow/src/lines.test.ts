import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLineCutter } from './lines.ts';

test('lines come out the same however the bytes were cut into chunks', () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[a-zäß€😀]{1,30}$/u)),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (lines, sizes) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const cutter = createLineCutter(1000);
        const out: string[] = [];
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = sizes[n % sizes.length] as number;
          for (const line of cutter.push(bytes.subarray(at, at + size)) ?? []) out.push(line.toString());
          at += size;
        }
        assert.deepEqual(out, lines);
      },
    ),
  );
});

test('a line longer than allowed is refused, whether its end has come or not', () => {
  assert.equal(createLineCutter(10).push(Buffer.from(`${'x'.repeat(11)}\n`)), undefined);
  assert.equal(createLineCutter(10).push(Buffer.from('x'.repeat(11))), undefined);
  const cutter = createLineCutter(10);
  assert.deepEqual(cutter.push(Buffer.from('x'.repeat(6))), []);
  assert.equal(cutter.push(Buffer.from(`${'x'.repeat(5)}\n`)), undefined);
  assert.equal(createLineCutter(10).push(Buffer.from(`${'x'.repeat(10)}\n`))?.length, 1);
});
