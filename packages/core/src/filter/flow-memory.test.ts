import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Packet } from '../firewall/packet.ts';
import { createFlowMemory } from './flow-memory.ts';
import { testPacket } from './testing/test-kind.ts';

const [client, server] = [0xc6336401n, 0xcb007107n];
const out = (fields: Partial<Packet> = {}) => testPacket({ source: client, destination: server, ...fields });
const back = (fields: Partial<Packet> = {}) =>
  testPacket({ source: server, destination: client, sourcePort: 7, destinationPort: 40_000, ...fields });
const tcp = (tcpFlags: number) => ({ upperProtocol: 6, tcpFlags });
const echo = (icmpType: number) => ({ upperProtocol: 1, icmpType, icmpCode: 0 });

/** [packets in order, D: does not get through; the states in which they are seen] */
for (const [what, packets, states] of [
  ['nobody answered yet', [out(), out()], 'new new'],
  ['an answer', [out(), back(), out()], 'new established established'],
  ['a question from inside, and its answer', [back(), out(), out()], 'new established established'],
  ['other ports', [out(), back(), out({ sourcePort: 1 })], 'new established new'],
  ['a handshake', [out(tcp(2)), back(tcp(0x12)), out(tcp(0x10))], 'new established established'],
  ['an acknowledgement of nothing', [out(tcp(0x10))], 'new'],
  [
    'a segment of a flow that began before',
    [out(tcp(0x10)), back(tcp(0x18)), out(tcp(0x10))],
    'new established established',
  ],
  ['an acknowledgement before the answer', [out(tcp(2)), out(tcp(0x10))], 'new invalid'],
  ['an answer to nothing', [back(tcp(0x12))], 'invalid'],
  ['a reset of nothing', [out(tcp(4))], 'invalid'],
  ['flags that nobody sets together', [out(tcp(2)), back(tcp(0x12)), out(tcp(0x29))], 'new established invalid'],
  [
    'a SYN-ACK of who began',
    [out(tcp(0x10)), out(tcp(0x12)), back(tcp(0x10)), out(tcp(0x12))],
    'new invalid established invalid',
  ],
  ['a reset before the answer', [out(tcp(2)), out(tcp(4)), out(tcp(2))], 'new new new'],
  ['a FIN after a reset that nobody answered', [out(tcp(0x10)), out(tcp(4)), out(tcp(0x11))], 'new new invalid'],
  [
    'data from the other side in the place of a SYN-ACK',
    [out(tcp(2)), back(tcp(0x18)), out(tcp(0x11))],
    'new established invalid',
  ],
  ['a SYN after a reset', [out(tcp(2)), back(tcp(0x14)), out(tcp(2))], 'new established new'],
  ['echoes', [out(echo(8)), back(echo(0)), out(echo(8))], 'new established established'],
  ['an echo that nobody asked for', [out(echo(0))], 'invalid'],
  ['an echo by who has asked himself', [out(echo(8)), out(echo(0))], 'new invalid'],
  ['a timestamp', [out(echo(13)), back(echo(14))], 'new established'],
  ['an ICMP error about nothing', [out(echo(3))], 'invalid'],
] as const) {
  test(`${what}: ${states}`, () => {
    const flows = createFlowMemory();
    const seen = packets.map((packet) => {
      const withoutPorts = packet.upperProtocol === 1 ? without(packet) : packet;
      const state = flows.see(withoutPorts);
      flows.pass(withoutPorts, state);
      return state;
    });
    assert.equal(seen.join(' '), states);
  });
}

function without({ sourcePort: _, destinationPort: __, ...packet }: Packet): Packet {
  return packet;
}

test('what does not get through begins no flow', () => {
  const flows = createFlowMemory();
  assert.equal(flows.see(out()), 'new');
  assert.equal(flows.see(back()), 'new');
});

test('an answer counts from when it is seen, whatever becomes of it', () => {
  const flows = createFlowMemory();
  flows.pass(out(), flows.see(out()));
  assert.equal(flows.see(back()), 'established');
  assert.equal(flows.see(out()), 'established');
});
