/**
 * A program: a small server of a game's queries and of what comes before a session, as far as its documents go; no server of
 * the game runs here. Whatever else arrives it sends back, as a session would answer. `answers.ts <game> <port> <address> …`;
 * writes `ready`.
 */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:http';

type Answer = (asked: Buffer) => string | undefined;

const hex = (text: string) => Buffer.from(text, 'latin1').toString('hex');
const word = (value: number) => Buffer.from([value & 0xff, value >> 8]).toString('hex');
/** A text behind its length in so many octets, the lowest first. */
const counted = (text: string, octets: number) => `${word(text.length)}00000000`.slice(0, octets * 2) + hex(text);
const name = 'Levee test server';

/** Valve's developer wiki, "Server queries"; the answer to a request to connect begins with A. */
const source: Answer = (asked) => {
  if (asked.readUInt32BE(0) !== 0xffffffff) return undefined;
  const challenge = `ffffffff41${'5b1c0a0b'}`;
  const brings = asked.subarray(-4).toString('hex') === '5b1c0a0b';
  switch (asked[4]) {
    case 0x54:
      if (!brings) return challenge;
      return `ffffffff49 11 ${hex(`${name}\0map\0folder\0game\0`)} f000 01 10 00 64 6c 00 01 ${hex('1.0\0')}`;
    case 0x55:
      return brings ? `ffffffff44 01 00 ${hex('Gordon\0')} 05000000 00004842` : challenge;
    case 0x56:
      return brings ? `ffffffff45 0100 ${hex('sv_gravity\x00800\0')}` : challenge;
    case 0x71:
      return `${challenge}00000000`;
    case 0x6b:
      return 'ffffffff42';
    default:
      return undefined;
  }
};

/** open.mp's documentation, "SA:MP Query Mechanism". */
const samp: Answer = (asked) => {
  if (asked.subarray(0, 4).toString('latin1') !== 'SAMP') return undefined;
  const head = asked.subarray(0, 11).toString('hex');
  switch (String.fromCharCode(asked[10] ?? 0)) {
    case 'i':
      return `${head} 00 0100 3200 ${counted(name, 4)}${counted('mode', 4)}${counted('English', 4)}`;
    case 'r':
      return `${head} 0100 ${counted('version', 1)}${counted('0.3.7-R2', 1)}`;
    case 'd':
      return `${head} 0100 00 ${counted('Carl', 1)} 07000000 28000000`;
    default:
      return head;
  }
};

/** wiki.vg, "Query". */
const minecraftQuery: Answer = (asked) => {
  const session = asked.subarray(3, 7).toString('hex');
  if (asked[2] === 9) return `09 ${session} ${hex('9513307\0')}`;
  const pairs = ['hostname', name, 'gametype', 'SMP', 'map', 'world', 'numplayers', '1', 'maxplayers', '20'].join('\0');
  return `00 ${session} ${hex('splitnum\0\x80\0')} ${hex(`${pairs}\0\0`)} ${hex('\x01player_\0\0Notch\0\0')}`;
};

/** The published source of FiveM's server, GetInfoOutOfBand.h. */
const fivem: Answer = (asked) =>
  asked.subarray(4, 11).toString() === 'getinfo'
    ? `ffffffff ${hex(`infoResponse\n\\sv_maxclients\\32\\clients\\1\\hostname\\${name}\\mapname\\map`)}`
    : undefined;

const games: Readonly<Record<string, Answer>> = { source, samp, 'minecraft-query': minecraftQuery, fivem };

const [game = '', port = '', ...addresses] = process.argv.slice(2);
const answer = games[game];
if (answer === undefined) throw new Error(`no such game: ${game}`);
for (const address of addresses) {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (asked, from) => {
    const text = answer(asked);
    socket.send(text === undefined ? asked : Buffer.from(text.replaceAll(' ', ''), 'hex'), from.port, from.address);
  });
  await new Promise<void>((done) => socket.bind(Number(port), address, done));
  if (game !== 'fivem') continue;
  const http = createServer(({ url }, response) => {
    response.end(JSON.stringify(url === '/players.json' ? [{ name: 'Michael', ping: 20 }] : { version: 1 }));
  });
  await new Promise<void>((done) => http.listen(Number(port), address, done));
}
console.log('ready');
