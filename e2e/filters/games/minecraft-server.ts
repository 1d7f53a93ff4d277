/**
 * A program: Minecraft's connections by mcproto, not encrypted. `minecraft-server.ts <port> <address> …`; writes `ready`. It
 * answers the server list's ping, lets players in, and sends back what they say.
 */
import { PacketWriter, Server, type ServerConnection, State } from 'mcproto';

const [port = '', ...addresses] = process.argv.slice(2);

async function serve(client: ServerConnection): Promise<void> {
  client.on('error', () => {});
  await client.nextPacket(0);
  if (client.state === State.Status) {
    await client.nextPacket(0);
    const status = {
      version: { name: '1.20', protocol: 763 },
      players: { max: 20, online: 1, sample: [{ name: 'Notch', id: '0' }] },
      description: { text: 'Levee test server' },
    };
    await client.send(new PacketWriter(0).writeJSON(status));
    return;
  }
  const player = (await client.nextPacket(0)).readString();
  await client.send(new PacketWriter(2).writeString('00000000-0000-0000-0000-000000000000').writeString(player));
  client.on('packet', (packet) => {
    client.send(new PacketWriter(1).writeString(packet.readString())).catch(() => {});
  });
}

for (const address of addresses) {
  const server = new Server({ generateKeyPair: false }, serve);
  server.on('error', () => {});
  await server.listen(Number(port), address);
}
console.log('ready');
