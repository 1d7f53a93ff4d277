/**
 * A program: asks a game's server as server lists do, by gamedig. `ask.ts <gamedig's protocol> <IPv4 address> <port>`; writes the
 * server's name and its players, or ends with 1 and says why not.
 */
import { GameDig } from 'gamedig';

const [protocol, host = '', port = ''] = process.argv.slice(2);
try {
  const { name, players } = await GameDig.query({
    type: `protocol-${protocol}`,
    host,
    port,
    givenPortOnly: true,
    requestRules: true,
    socketTimeout: 1000,
    attemptTimeout: 3000,
  });
  process.stdout.write(JSON.stringify({ name, players: players.map((player) => player.name) }));
} catch (error) {
  process.stdout.write(String(error));
  process.exitCode = 1;
}
