import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';
import { FrameReader, FrameWriter } from './frames.ts';

test('a message longer than a frame arrives whole, in whatever order its frames come', () => {
  const writer = new FrameWriter(randomBytes(8));
  const reader = new FrameReader();
  for (const length of [0, 1, 984, 985, 40_000]) {
    const message = randomBytes(length);
    const frames = writer.cut(message, 1_000) ?? [];
    assert.ok(frames.every((frame) => frame.length <= 1_000));
    const out = frames.reverse().map((frame) => reader.take(frame, 0));
    assert.deepEqual(Buffer.from(out.at(-1) as Uint8Array), message);
    assert.ok(out.slice(0, -1).every((each) => each === undefined));
  }
  assert.equal(writer.cut(new Uint8Array(300_000), 1_000), undefined, 'more frames than there may be');
});

test('frames of two senders are told apart, and one that comes twice is none', () => {
  const reader = new FrameReader();
  const [a, b] = [1, 2].map((each) =>
    new FrameWriter(new Uint8Array(8).fill(each)).cut(Buffer.alloc(1_500, each), 1_000),
  );
  assert.equal(reader.take(a?.[0] as Uint8Array, 0), undefined);
  assert.equal(reader.take(b?.[0] as Uint8Array, 0), undefined);
  assert.equal(reader.take(a?.[0] as Uint8Array, 0), false);
  assert.deepEqual(reader.take(b?.[1] as Uint8Array, 0), Buffer.alloc(1_500, 2));
  assert.deepEqual(reader.take(a?.[1] as Uint8Array, 0), Buffer.alloc(1_500, 1));
});

test('what is never completed is let go: by time, by number, by octets', () => {
  const reader = new FrameReader();
  const writer = new FrameWriter(randomBytes(8));
  const first = (length: number) => (writer.cut(new Uint8Array(length), 1 << 20) as Uint8Array[])[0] as Uint8Array;
  for (let i = 0; i < 100; i++) reader.take(first((1 << 20) + 5), 0);
  assert.ok(reader.incomplete >= 100 - 64, String(reader.incomplete));
  const before = reader.incomplete;
  reader.take(first((1 << 20) + 5), 10_000);
  assert.ok(reader.incomplete > before);
  for (const octets of [new Uint8Array(0), new Uint8Array(15), new Uint8Array(16)])
    assert.equal(reader.take(octets, 0), false);
});
