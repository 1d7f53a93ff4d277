/** A UDP port that takes notifications as a secondary would, or does not, as a test wants it. Test code only. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import type { TestContext } from 'node:test';
import * as dnsPacket from 'dns-packet';

export interface Notification {
  readonly id: number;
  readonly atMilliseconds: number;
  readonly zone: string;
  readonly serial: number;
  /** The second word of the header. */
  readonly word: number;
  readonly octets: Buffer;
  readonly from: RemoteInfo;
}

export interface FakeSecondary {
  readonly port: number;
  readonly received: Notification[];
  /** Undefined: silence. */
  answerCode: number | undefined;
  /** From this port. */
  send(octets: Buffer, to: RemoteInfo): void;
}

/** What acknowledges a notification, or refuses it. */
export function acknowledgement(notification: Buffer, code: number): Buffer {
  const answer = Buffer.from(notification);
  answer.writeUInt16BE(answer.readUInt16BE(2) | 0x8000 | code, 2);
  return answer;
}

export async function fakeSecondary(t: TestContext, answerCode: number | undefined): Promise<FakeSecondary> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  t.after(() => socket.close());
  const send = (octets: Buffer, to: RemoteInfo) => socket.send(octets, to.port, to.address);
  const secondary: FakeSecondary = { port: socket.address().port, received: [], answerCode, send };
  socket.on('message', (message, from) => {
    const packet = dnsPacket.decode(message);
    const soa = packet.answers?.[0] as dnsPacket.BaseAnswer<'SOA', dnsPacket.SoaData>;
    secondary.received.push({
      id: packet.id ?? -1,
      atMilliseconds: performance.now(),
      zone: packet.questions?.[0]?.name ?? '',
      serial: soa.data.serial ?? -1,
      word: message.readUInt16BE(2),
      octets: message,
      from,
    });
    if (secondary.answerCode !== undefined) send(acknowledgement(message, secondary.answerCode), from);
  });
  return secondary;
}
