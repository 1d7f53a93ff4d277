/**
 * The model of a packet (from its description) and core's decoder (from its bytes) are written apart. The first is what
 * the kernel is held to; here the second is held to the first, on the very packets that the kernel is sent.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePacket } from '@levee/core/firewall/decode-packet.ts';
import type { Packet } from '@levee/core/firewall/packet.ts';
import { buildFrame } from '@levee/lab/packet-build.ts';
import { Random } from '@levee/lab/random.ts';
import { chosenSeed } from './meaning-run.ts';
import { describePacket } from './packet-meaning.ts';
import { randomPacket } from './random-packets.ts';
import { RuleMaker } from './random-rules.ts';

const ethernetBytes = 14;
const noOperation = 1;

test('the bytes of 20 000 packets are read as what the packets were built to be', (t) => {
  const seed = chosenSeed();
  t.diagnostic(`seed ${seed} (LEVEE_SEED=${seed} repeats this run)`);
  const random = new Random(seed);
  let told = 0;
  for (let set = 0; set < 100; set++) {
    const rules = new RuleMaker(random, { stateful: false }).rules(40);
    for (let id = 1; id <= 200; id++) {
      const spec = randomPacket(random, rules, id, false);
      const described = describePacket(spec);
      const decoded = decodePacket(buildFrame(spec).subarray(ethernetBytes), { packetType: described.packetType });
      assert.ok(decoded.ok, `not read at all: ${show(described)}`);
      assert.deepEqual(comparable(decoded.packet), comparable(described), show(described));
      told += 1;
    }
  }
  assert.equal(told, 20_000);
});

/** What rules and filters look at: not padding between options, and headers in whatever order. */
function comparable({ payload, tcpOptionKinds, extensionHeaders, ...facts }: Packet) {
  return {
    ...facts,
    extensionHeaders: new Set(extensionHeaders),
    ...(payload && { payload: Buffer.from(payload).toString('hex') }),
    ...(tcpOptionKinds && { tcpOptionKinds: tcpOptionKinds.filter((kind) => kind !== noOperation) }),
  };
}

function show(packet: Packet): string {
  return JSON.stringify(packet, (_, value) => (typeof value === 'bigint' ? `0x${value.toString(16)}` : value));
}
