/** A program: connects by @honeybbq/teamspeak-client and stays. `teamspeak-client.ts <IPv4 address>:<port>`. */
import { Client, generateIdentity } from '@honeybbq/teamspeak-client';

const client = new Client(generateIdentity(1), process.argv[2] ?? '', 'levee');
client.on('disconnected', (error) => console.log(String(error)));
await client.connect();
