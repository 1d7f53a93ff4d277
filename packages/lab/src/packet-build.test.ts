import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { crc32c, foldChecksum, pseudoHeaderSum, sumWords } from './checksum.ts';
import { labObstacle } from './namespace.ts';
import { buildFragments, buildFrame } from './packet-build.ts';
import { openPacketSocket, PreparedFrames } from './packet-socket.ts';
import { addressBytes, type PacketSpec, type Transport } from './packet-spec.ts';
import { device, hardwareAddress, RouterPath } from './router-path.ts';

const skip = labObstacle() ?? false;

// The customer's own addresses (see router-path.ts), so that its kernel's stack judges the packets.
const customer4 = 0xc0000206n;
const customer6 = 0xfd00_000b_0000_0000_0000_0000_0000_0002n;
const attacker4 = 0xc0000202n;
const attacker6 = 0xfd00_000a_0000_0000_0000_0000_0000_0002n;

let path: RouterPath;
before(() => {
  if (!skip) path = new RouterPath({ protectedPrefixes: [], label: 'build' });
});
after(() => path?.remove());

function spec(family: 4 | 6, transport: Transport, more: Partial<PacketSpec> = {}): PacketSpec {
  return {
    family,
    source: family === 4 ? attacker4 : attacker6,
    destination: family === 4 ? customer4 : customer6,
    sourceHardware: hardwareAddress.attacker,
    destinationHardware: hardwareAddress.routerOutside,
    id: 77,
    transport,
    ...more,
  };
}

/** Sends frames to the customer and waits for its kernel's answer: [IP protocol, first byte(s) behind the IP header]. */
async function answerTo(frames: readonly Uint8Array[]): Promise<{ protocol: number; payload: Uint8Array }> {
  using listening = openPacketSocket(path.attacker, { device: device.attacker, receiveBytes: 2048 });
  using sending = openPacketSocket(path.attacker, { device: device.attacker });
  sending.send(new PreparedFrames(frames));
  const deadline = performance.now() + 2000;
  for (;;) {
    let answer: { protocol: number; payload: Uint8Array } | undefined;
    listening.receive((frame) => {
      const v6 = frame[12] === 0x86;
      if (v6 && frame[38] === 0xff) return; // a new address reports its multicast group
      answer ??= { protocol: frame[v6 ? 20 : 23] as number, payload: frame.slice(v6 ? 54 : 34) };
    });
    if (answer) return answer;
    if (performance.now() > deadline) throw new Error('no answer: the kernel did not take the packet');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const udp: Transport = { kind: 'udp', sourcePort: 4000, destinationPort: 4001 };
const tcpSyn: Transport = { kind: 'tcp', sourcePort: 4000, destinationPort: 4001, flags: 0x02, sequence: 1000 };

test('a kernel takes the packets for good: echo is answered, closed ports are refused', { skip }, async () => {
  for (const family of [4, 6] as const) {
    const icmp = family === 4 ? 1 : 58;
    const echo = await answerTo([
      buildFrame(spec(family, { kind: 'icmp', type: family === 4 ? 8 : 128, code: 0 }, { totalLength: 133 })),
    ]);
    assert.deepEqual([echo.protocol, echo.payload[0]], [icmp, family === 4 ? 0 : 129]);

    const unreachable = await answerTo([buildFrame(spec(family, udp, { totalLength: 101 }))]);
    assert.deepEqual([...unreachable.payload.slice(0, 2)], family === 4 ? [3, 3] : [1, 4]);

    const reset = await answerTo([
      buildFrame(spec(family, { ...tcpSyn, options: Uint8Array.of(30, 4, 0, 1) } as Transport)),
    ]);
    assert.equal(reset.protocol, 6);
    assert.equal((reset.payload[13] as number) & 0x04, 0x04);
  }
});

test('a kernel walks the extension headers to the transport', { skip }, async () => {
  for (const kind of ['hop-by-hop', 'destination-options'] as const) {
    const answer = await answerTo([buildFrame(spec(6, tcpSyn, { extensions: [{ kind }] }))]);
    assert.equal((answer.payload[13] as number) & 0x04, 0x04, kind);
  }
});

test('a kernel puts the fragments together again, checksum and all', { skip }, async () => {
  for (const family of [4, 6] as const) {
    const frames = buildFragments(spec(family, udp, { totalLength: 1000 }), [256, 400]);
    assert.equal(frames.length, 3);
    const answer = await answerTo(frames);
    assert.deepEqual([...answer.payload.slice(0, 2)], family === 4 ? [3, 3] : [1, 4]);
  }
});

test('the total length is the one asked for, or the headers’ own', () => {
  for (const totalLength of [48, 49, 576, 1500]) {
    assert.equal(buildFrame(spec(4, udp, { totalLength })).length, 14 + totalLength);
  }
  assert.equal(buildFrame(spec(6, udp)).length, 14 + 48);
  assert.throws(() => buildFrame(spec(6, udp, { totalLength: 47 })), /headers take 48/);
});

test('checksums of UDP-Lite, DCCP and SCTP verify', () => {
  const ports = { sourcePort: 1, destinationPort: 2 };
  for (const [kind, number] of [
    ['udplite', 136],
    ['dccp', 33],
  ] as const) {
    const frame = buildFrame(spec(4, { kind, ...ports }, { totalLength: 120 }));
    const payload = frame.subarray(34);
    const pseudo = pseudoHeaderSum(addressBytes(4, attacker4), addressBytes(4, customer4), number, payload.length);
    assert.equal(foldChecksum(sumWords(payload, pseudo)), 0, kind);
  }
  // Check value of CRC-32C in the catalogue of parametrised CRC algorithms.
  assert.equal(crc32c(new TextEncoder().encode('123456789')), 0xe3069283);
  const frame = buildFrame(spec(4, { kind: 'sctp', ...ports }, { totalLength: 120 }));
  const sctp = frame.slice(34);
  const carried = new DataView(sctp.buffer).getUint32(8, true);
  sctp.fill(0, 8, 12);
  assert.equal(crc32c(sctp), carried);
});

test('IPv6 headers stand on their side of the fragment header, and a later fragment has none behind it', () => {
  const extensions = [{ kind: 'hop-by-hop' }, { kind: 'destination-options' }] as const;
  const first = buildFrame(spec(6, udp, { extensions, fragment: { offset: 0, more: true } }));
  // Hop-by-hop names fragment, fragment names destination options, those name UDP.
  assert.deepEqual([first[20], first[54], first[62], first[70]], [0, 44, 60, 17]);
  const later = buildFrame(spec(6, udp, { extensions, fragment: { offset: 64, more: false }, totalLength: 80 }));
  assert.deepEqual([later[20], later[54], later[62]], [0, 44, 60]);
  assert.equal(later.length, 14 + 80);
});

test('a packet can end inside its transport header', () => {
  const frame = buildFrame(spec(4, tcpSyn, { keepPayloadBytes: 8 }));
  assert.equal(frame.length, 14 + 28);
  assert.equal((frame[16] as number) * 256 + (frame[17] as number), 28);
});
