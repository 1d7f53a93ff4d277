/**
 * What is guaranteed of every kind with a SYN proxy, as steps of tests: who sees which packet of a handshake, a real web
 * server and curl, a flood of SYNs. Never says which kind.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Family } from '@levee/core/net/prefix.ts';
import { startFlood } from '@levee/lab/flood.ts';
import { device } from '@levee/lab/router-path.ts';
import { type FilteredPath, server, until } from './filtered-path.ts';
import type { Nginx } from './nginx.ts';
import { RawClient, type Seen, segmentFrame, strangersAddress } from './raw-client.ts';

const [syn, rst, synAck, ack, pushAck] = [0x02, 0x04, 0x12, 0x10, 0x18];

export function origin(family: Family): string {
  return `http://${family === 4 ? server[4] : `[${server[6]}]`}`;
}

/** The router answers a SYN; the server hears of the client only when that has brought back the cookie. */
export async function showHandshake(path: FilteredPath, family: Family): Promise<void> {
  using raw = new RawClient(path);
  const source = strangersAddress(family, 9);
  const from = { family, source, sourcePort: 4321, destinationPort: 80 };
  await raw.send(segmentFrame({ ...from, flags: syn, sequence: 1000 }));
  const [answer] = raw.answers.filter(({ destination }) => destination === source);
  assert.equal(answer?.flags, synAck);
  assert.equal(answer.acknowledgement, 1001);
  const arrived = () => raw.arrivals.filter((seen) => seen.source === source);
  assert.deepEqual(arrived(), [], 'the server has heard of it');

  const bring = { ...from, flags: ack, sequence: 1001 };
  await raw.send(segmentFrame({ ...bring, acknowledgement: (answer.sequence + 2 ** 31) >>> 0 }));
  assert.deepEqual(arrived(), [], 'an ACK without the cookie got through');
  await raw.send(segmentFrame({ ...bring, acknowledgement: (answer.sequence + 1) >>> 0 }));
  // The router's own SYN, with the client's address and sequence number.
  const [opening] = arrived();
  assert.deepEqual(opening && told(opening), { flags: syn, source, sourcePort: 4321, sequence: 1000 });
  await until('the router to acknowledge the server', () => {
    raw.look();
    return arrived().some(({ flags }) => flags === ack);
  });
}

function told({ flags, source, sourcePort, sequence }: Seen) {
  return { flags, source, sourcePort, sequence };
}

/** Segments of no connection, without form, and a SYN with a wrong sum: none arrives, and nothing but SYNs is answered. */
export async function showStrangersDiscarded(path: FilteredPath, family: Family): Promise<void> {
  using raw = new RawClient(path);
  const from = (number: number, flags: number) => {
    return { family, source: strangersAddress(family, number), sourcePort: 5000 + number, destinationPort: 80, flags };
  };
  const flags = [ack, pushAck, synAck, rst, 0x14, 0x11, 0x00, 0x01, 0x03, 0x06, 0x29, 0x3f];
  const before = path.discarded();
  const damaged = segmentFrame(from(99, syn));
  damaged[damaged.length - 4] = (damaged[damaged.length - 4] as number) ^ 1;
  await raw.send(...flags.map((each, index) => segmentFrame(from(index, each))), damaged);
  assert.deepEqual(raw.arrivals, []);
  assert.deepEqual(raw.answers, []);
  // ACKs without a cookie are the proxy's to discard, and so is the damaged SYN.
  assert.equal(path.discarded() - before, flags.length - 2);
}

/** Options of curl's with which it prints how many octets it got. */
export const downloading = ['-sS', '-m', '30', '-o', '/dev/null', '-w', '%{size_download}'];

/** `200` and what else was asked for by `-w`. */
async function curl(path: FilteredPath, ...args: readonly string[]): Promise<string> {
  const { output } = await path.run(path.client, 'curl', ['-sS', '-m', '10', '-w', '%{http_code}', ...args]);
  return output;
}

const large = Buffer.alloc(20_000_000, 'what is sent is what arrives; ');
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Small and large, there and back, one after the other and at once, and twice from the same port. */
export async function showBrowsing(path: FilteredPath, nginx: Nginx, family: Family): Promise<void> {
  const base = origin(family);
  nginx.offer('small', Buffer.from('small\n'));
  nginx.offer('large', large);
  assert.equal(await curl(path, `${base}/small`), 'small\n200');
  assert.equal(await curl(path, '-o', `${nginx.directory}/fetched`, `${base}/large`), '200');
  assert.equal(digest(nginx.file('fetched')), digest(large));
  assert.match(await curl(path, '-T', `${nginx.directory}/fetched`, `${base}/put/v${family}`), /20[14]$/);
  assert.equal(digest(nginx.file(`files/put/v${family}`)), digest(large));
  const many = await Promise.all(Array.from({ length: 20 }, () => curl(path, `${base}/small`)));
  assert.deepEqual(new Set(many), new Set(['small\n200']));
  // The same ports again, while conntrack and the server still remember the connection before.
  path.client.sysctl({ 'ipv4/tcp_max_tw_buckets': 0 });
  const samePort = ['-0', '-H', 'Connection: close', '--local-port', '33333', `${base}/small`];
  for (let time = 1; time <= 3; time++) {
    let fetched = await curl(path, ...samePort);
    while (fetched.includes('Address already in use')) fetched = await curl(path, ...samePort);
    assert.equal(fetched, 'small\n200', `time ${time}`);
  }
}

/** The third packet of each handshake is lost on its way: it takes the client's next word, a fifth of a second later. */
export async function showLostAnswers(path: FilteredPath, nginx: Nginx, family: Family): Promise<void> {
  nginx.offer('small', Buffer.from('small\n'));
  path.client.loadNft(`table inet lossy {
    set seen { type inet_service; flags dynamic; size 1000; }
    chain output {
      type filter hook output priority 0;
      tcp dport 80 tcp flags & (syn | ack | fin | rst | psh) == ack tcp sport != @seen add @seen { tcp sport } drop
    }
  }\n`);
  try {
    // Sequence numbers that end in zeros, ones, and anything between.
    const fetched = await Promise.all(Array.from({ length: 12 }, () => curl(path, `${origin(family)}/small`)));
    assert.deepEqual(new Set(fetched), new Set(['small\n200']));
    const lost = path.client.run('nft', ['list', 'set', 'inet', 'lossy', 'seen']);
    assert.match(lost, /elements/, 'nothing was lost');
  } finally {
    path.client.loadNft('delete table inet lossy\n');
  }
}

export interface Flooded {
  readonly offeredPacketsPerSecond: number;
  readonly asked: number;
  readonly answered: number;
  readonly slowestSeconds: number;
  readonly mostTracked: number;
  /** Forged SYNs that the server saw. */
  readonly arrived: number;
}

/** As many SYNs from forged sources as one core makes, while curl asks again and again. */
export async function floodWithSyns(
  path: FilteredPath,
  nginx: Nginx,
  family: Family,
  { seconds = 2, packetsPerSecond = 150_000 } = {},
): Promise<Flooded> {
  nginx.offer('small', Buffer.from('small\n'));
  const frames = Array.from({ length: 8192 }, (_, index) => {
    const place = { family, source: (family === 4 ? 0x0a000000n : 0xfd99n << 112n) + BigInt(index * 1999) };
    const ports = { sourcePort: 1024 + ((index * 31) % 60_000), destinationPort: 80 };
    return segmentFrame({ ...place, ...ports, flags: syn, sequence: index * 77_777 });
  });
  const received = () => path.server.deviceCounters(device.customer).receivedPackets;
  const before = received();
  const flood = startFlood({ namespace: path.client.name, device: device.attacker, frames, packetsPerSecond, seconds });
  let over = false;
  const finished = flood.finished.finally(() => {
    over = true;
  });
  await until('the flood to begin', () => flood.sent() > 5000);
  const answers: number[] = [];
  let [asked, mostTracked] = [0, 0];
  while (!over) {
    const begun = performance.now();
    asked += 1;
    if ((await curl(path, `${origin(family)}/small`)) === 'small\n200') answers.push(performance.now() - begun);
    mostTracked = Math.max(mostTracked, path.tracked());
    await delay(20);
  }
  const result = await finished;
  // Of a connection of curl's, the server receives some ten packets.
  const arrived = Math.max(0, received() - before - asked * 20);
  return {
    offeredPacketsPerSecond: Math.round(result.packets / result.seconds),
    asked,
    answered: answers.length,
    slowestSeconds: Math.max(...answers) / 1000,
    mostTracked,
    arrived,
  };
}

export function assertSurvived(flooded: Flooded): void {
  assert.ok(flooded.asked >= 3 && flooded.answered === flooded.asked, 'every request is answered');
  assert.equal(flooded.arrived, 0, 'no forged SYN reaches the server');
  assert.ok(flooded.mostTracked < 1000, `${flooded.mostTracked} entries in conntrack`);
}
