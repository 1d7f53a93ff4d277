/**
 * A program: RakNet by @jsprismarine/raknet. `raknet-server.ts <IPv4 address> <port>`; writes `ready`. It answers pings with a
 * name, both requests to connect, and what belongs to a session.
 */
import Listener from '@jsprismarine/raknet';

const [address = '', port = ''] = process.argv.slice(2);
await new Listener().listen(address, Number(port));
console.log('ready');
