/**
 * A program: `exchange.ts <address> <port> <hexadecimal> …` sends each datagram from one socket when the one before was answered,
 * and writes the answers in hexadecimal, a line each. Ends with 1 when an answer has not come within 3 s.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const [address = '', port = '', ...datagrams] = process.argv.slice(2);
const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
for (const each of datagrams) {
  try {
    socket.send(Buffer.from(each.replaceAll(' ', ''), 'hex'), Number(port), address);
    const [answer] = await once(socket, 'message', { signal: AbortSignal.timeout(3000) });
    console.log(answer.toString('hex'));
  } catch {
    console.log(`no answer to ${each}`);
    process.exit(1);
  }
}
socket.close();
