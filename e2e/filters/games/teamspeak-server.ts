/**
 * A program: as much of a TeamSpeak server as opens a session, after ReSpeak's description (ts3protocol.md, 2.1 to 2.5), and then a
 * ping for each opening that was completed. `teamspeak-server.ts <port> <address> …`; writes `ready`, `step <n>` for each opening
 * packet and `pong` for each answer to a ping.
 */
import { createSocket } from 'node:dgram';

const [port = '', ...addresses] = process.argv.slice(2);
const opening = Buffer.from('54533349 4e495431 0065 88'.replaceAll(' ', ''), 'hex');
/** Of a packet that is not encrypted, before keys are known. */
const ping = Buffer.from(`${'00'.repeat(8)} 0001 84`.replaceAll(' ', ''), 'hex');
const puzzle = Buffer.alloc(64, 0x35);

for (const address of addresses) {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (packet, from) => {
    const answer = (body: Buffer) => socket.send(body, from.port, from.address);
    const type = (packet[12] ?? 0) & 0x0f;
    if (type === 5) console.log('pong');
    if (type !== 8) return;
    const step = packet[17];
    console.log(`step ${step}`);
    if (step === 0) {
      const reversed = Buffer.from(packet.subarray(22, 26)).reverse();
      answer(Buffer.concat([opening, Buffer.from([1]), Buffer.alloc(16, 7), reversed]));
    } else if (step === 2) {
      const level = Buffer.from([0, 0, 0, 1]);
      answer(Buffer.concat([opening, Buffer.from([3]), puzzle, puzzle, level, Buffer.alloc(100, 9)]));
    } else {
      answer(ping);
    }
  });
  await new Promise<void>((done) => socket.bind(Number(port), address, done));
}
console.log('ready');
