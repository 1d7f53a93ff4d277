/**
 * A program: ENet 1.3 by Debian's libenet, over IPv4. `enet.ts server <address> <port>` writes `ready` and sends back what it is
 * sent; `enet.ts client <address> <port>` connects, writes `connected`, then `answered` for each answer to a packet every
 * 20 ms.
 */
import koffi from 'koffi';

const [role, address = '', port = ''] = process.argv.slice(2);
const enet = koffi.load('libenet.so.7');
koffi.struct('Address', { host: 'uint32_t', port: 'uint16_t' });
koffi.struct('Event', {
  type: 'int',
  peer: 'void *',
  channel: 'uint8_t',
  data: 'uint32_t',
  packet: 'void *',
});
const packetType = koffi.struct('Packet', {
  references: 'size_t',
  flags: 'uint32_t',
  data: 'void *',
  length: 'size_t',
});
const initialize = enet.func('int enet_initialize()');
const createHost = enet.func(
  'void *enet_host_create(Address *address, size_t peers, size_t channels, uint32_t down, uint32_t up)',
);
const connect = enet.func('void *enet_host_connect(void *host, Address *address, size_t channels, uint32_t data)');
const service = enet.func('int enet_host_service(void *host, _Out_ Event *event, uint32_t milliseconds)');
const createPacket = enet.func('void *enet_packet_create(void *data, size_t length, uint32_t flags)');
const destroyPacket = enet.func('void enet_packet_destroy(void *packet)');
const send = enet.func('int enet_peer_send(void *peer, uint8_t channel, void *packet)');

const event = { connect: 1, disconnect: 2, receive: 3 } as const;
const reliable = 1;
/** Both as they stand in memory: the address in network order. */
const there = { host: Buffer.from(address.split('.').map(Number)).readUInt32LE(), port: Number(port) };
if (initialize() !== 0) throw new Error('ENet did not start');
const host = createHost(role === 'server' ? there : null, 32, 2, 0, 0);
if (host === null) throw new Error(`no ENet host at ${address}:${port}`);
const peer: unknown = role === 'server' ? undefined : connect(host, there, 2, 0);
let connected = false;
if (role === 'server') console.log('ready');

setInterval(() => {
  const happened: { type?: number; peer?: unknown; packet?: unknown } = {};
  while (service(host, happened, 0) > 0) {
    if (happened.type === event.connect && role === 'client') {
      connected = true;
      console.log('connected');
    }
    if (happened.type === event.receive) {
      const { data, length } = koffi.decode(happened.packet, packetType) as { data: unknown; length: number };
      if (role === 'client') console.log('answered');
      else send(happened.peer, 0, createPacket(data, length, reliable));
      destroyPacket(happened.packet);
    }
    if (happened.type === event.disconnect) {
      connected = false;
      console.log('disconnected');
    }
  }
}, 2);
if (role === 'client') {
  const said = Buffer.from('hello');
  setInterval(() => connected && send(peer, 0, createPacket(said, said.length, reliable)), 20);
}
