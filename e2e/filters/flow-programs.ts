/**
 * Two programs, as module texts: a client that keeps a TCP and a UDP flow of each family running, and the server that
 * answers it. They take orders and tell what they have counted, a line each. Must never lose count: whatever is sent is
 * counted, and whatever comes back.
 */

export interface FlowTally {
  /** TCP: octets; UDP: datagrams. By family. */
  readonly sent: Readonly<Record<string, number>>;
  readonly received: Readonly<Record<string, number>>;
}

/** Echoes TCP on 443; answers each datagram to 53 with the same and the bit that makes it an answer. */
export function flowServer(addresses: readonly string[]): string {
  return `import { createServer } from 'node:net';
    import { createSocket } from 'node:dgram';
    for (const address of ${JSON.stringify(addresses)}) {
      const echo = (socket) => socket.setNoDelay(true).on('error', () => {}).pipe(socket);
      await new Promise((done) => createServer(echo).listen(443, address, done));
      const udp = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      udp.on('message', (message, from) => {
        message[2] |= 0x80;
        udp.send(message, from.port, from.address);
      });
      await new Promise((done) => udp.bind(53, address, done));
    }
    console.log('ready');`;
}

/**
 * About every 5 ms a block of 500 octets on each connection, and a DNS question. \`bulk\`: so many octets more on each
 * connection, told when they have come back. \`stop\`: sends no more; the tally when all is back, or after 5 s.
 */
export function flowClient(addresses: readonly string[], bulkOctets: number): string {
  return `import { connect } from 'node:net';
    import { createSocket } from 'node:dgram';
    import { createInterface } from 'node:readline';
    const sent = {}, received = {}, tcp = new Map(), udp = new Map();
    const question = Buffer.from('4d3101000001000000000000076578616d706c6503636f6d0000010001', 'hex');
    for (const address of ${JSON.stringify(addresses)}) {
      const family = address.includes(':') ? 6 : 4;
      const [stream, datagrams] = ['tcp' + family, 'udp' + family];
      for (const each of [stream, datagrams]) sent[each] = received[each] = 0;
      const socket = connect({ host: address, port: 443 }).setNoDelay(true);
      socket.on('data', (data) => { received[stream] += data.length; });
      await new Promise((done, failed) => socket.once('connect', done).once('error', failed));
      tcp.set(stream, socket);
      const datagram = createSocket('udp' + family);
      datagram.on('message', (message) => { if (message[2] & 0x80) received[datagrams] += 1; });
      await new Promise((done) => datagram.bind(0, done));
      udp.set(datagrams, { datagram, address });
    }
    const write = (name, octets) => { sent[name] += octets; tcp.get(name).write(Buffer.alloc(octets)); };
    const timer = setInterval(() => {
      for (const name of tcp.keys()) write(name, 500);
      for (const [name, { datagram, address }] of udp) { sent[name] += 1; datagram.send(question, 53, address); }
    }, 5);
    const all = () => Object.keys(sent).every((name) => sent[name] === received[name]);
    const tell = (told) => console.log(JSON.stringify({ told, sent, received }));
    const orders = {
      async tally() { tell('tally'); },
      async bulk() {
        const before = { ...received };
        for (const name of tcp.keys()) write(name, ${bulkOctets});
        while ([...tcp.keys()].some((name) => received[name] < before[name] + ${bulkOctets})) {
          await new Promise((done) => setTimeout(done, 5));
        }
        tell('bulk');
      },
      async stop() {
        clearInterval(timer);
        for (const end = Date.now() + 5000; !all() && Date.now() < end; ) await new Promise((done) => setTimeout(done, 5));
        tell('stop');
      },
    };
    createInterface({ input: process.stdin }).on('line', (order) => orders[order]());
    console.log('ready');`;
}
