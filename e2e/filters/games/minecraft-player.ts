/**
 * A program: joins a Minecraft server by mcproto and speaks. `minecraft-player.ts <address> <port>`; writes `joined`, then the
 * answer to each line of its standard input.
 */
import { createInterface } from 'node:readline';
import { Client, PacketWriter, State } from 'mcproto';

const [address = '', port = ''] = process.argv.slice(2);
const client = await Client.connect(address, Number(port), { connectTimeout: 3000 });
await client.send(
  new PacketWriter(0).writeVarInt(340).writeString('localhost').writeUInt16(Number(port)).writeVarInt(State.Login),
);
await client.send(new PacketWriter(0).writeString('Notch'));
await client.nextPacket(2, false);
console.log('joined');
for await (const line of createInterface({ input: process.stdin })) {
  await client.send(new PacketWriter(2).writeString(line));
  console.log((await client.nextPacket(1)).readString());
}
client.end();
