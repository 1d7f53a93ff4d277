import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classify, vectors } from './vector.ts';

test('the numbers of vectors stay what they are: collectors and detectors of two releases name them so', () => {
  assert.equal(
    vectors.join(),
    'udp-amplification,tcp-syn,tcp-syn-ack,tcp-ack,tcp-rst,tcp-other,icmp,gre,esp,ip-fragment,udp-other,ip-other,total',
  );
});

test('a packet is of the vector that its headers say, a flow of what its packets are together', () => {
  const [FIN, SYN, RST, PSH, ACK] = [1, 2, 4, 8, 16];
  const cases: [protocol: number, sourcePort: number, flags: number, fragment: boolean, flow: boolean, string][] = [
    [17, 53, 0, false, false, 'udp-amplification'],
    [17, 11211, 0, false, true, 'udp-amplification'],
    [17, 443, 0, false, false, 'udp-other'],
    [17, 53, 0, true, false, 'ip-fragment'],
    [6, 53, SYN, false, false, 'tcp-syn'],
    [6, 443, SYN | ACK, false, false, 'tcp-syn-ack'],
    [6, 443, SYN | ACK | PSH | FIN, false, true, 'tcp-ack'],
    [6, 443, SYN | FIN, false, false, 'tcp-other'],
    [6, 443, 0, false, false, 'tcp-other'],
    [6, 443, ACK | PSH, false, false, 'tcp-ack'],
    [6, 443, RST | ACK, false, false, 'tcp-rst'],
    [6, 443, RST | ACK | PSH, false, true, 'tcp-ack'],
    [1, 0, 0, false, false, 'icmp'],
    [58, 0, 0, false, false, 'icmp'],
    [47, 0, 0, false, false, 'gre'],
    [50, 0, 0, false, false, 'esp'],
    [132, 0, 0, false, false, 'ip-other'],
  ];
  for (const [protocol, sourcePort, flags, fragment, flow, vector] of cases) {
    const found = vectors[classify(protocol, sourcePort, flags, fragment, flow)];
    assert.equal(found, vector, `${protocol} ${sourcePort} ${flags} ${fragment} ${flow}`);
  }
});
