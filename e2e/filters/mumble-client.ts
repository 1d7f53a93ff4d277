/**
 * A Mumble client, as far as a filter can tell: the control channel over TLS (protocol documentation, "Establishing a
 * connection", and Mumble.proto) and encrypted pings over UDP as voice goes (OCB2 with AES, CryptSetup). No audio.
 *
 * Run with the server's address and port. A line on its standard input is one thing to do (`connect`, `tcp`, `udp`, `query`),
 * a line on its standard output one that the server has answered (`synced`, `tcp`, `udp`, `query`).
 */
import { createCipheriv } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { createInterface } from 'node:readline';
import { connect, type TLSSocket } from 'node:tls';

const message = { version: 0, authenticate: 2, ping: 3, reject: 4, serverSync: 5, cryptSetup: 15 } as const;
/** The answer to a plain ping (voice data, "UDP connectivity checks" of the server list). */
const queryAnswer = 24;

const [host = '', portText = ''] = process.argv.slice(2);
const port = Number(portText);
const datagrams = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
let control: TLSSocket | undefined;
let crypt: { readonly key: Buffer; readonly nonce: Buffer } | undefined;

datagrams.on('message', (octets) => console.log(octets.length === queryAnswer ? 'query' : 'udp'));

createInterface({ input: process.stdin }).on('line', (line) => {
  switch (line) {
    case 'connect':
      return openControl();
    case 'tcp':
      return send(message.ping, Buffer.from([0x08, 0x01]));
    case 'udp':
      // 001 and a time, as the clients of 1.3 and 1.4 write it.
      return datagrams.send(encrypted(Buffer.from([0x20, 0x2a])), port, host);
    case 'query':
      return datagrams.send(Buffer.from('000000000123456789abcdef', 'hex'), port, host);
  }
});

function openControl(): void {
  // The server makes its certificate itself.
  control = connect({ host, port, rejectUnauthorized: false }, () => {
    send(message.version, Buffer.concat([Buffer.from([0x08]), varint((1 << 16) | (3 << 8) | 4), text(2, 'test')]));
    send(message.authenticate, Buffer.concat([text(1, `tester-${process.pid}`), Buffer.from([0x28, 0x01])]));
  });
  let pending: Buffer = Buffer.alloc(0);
  control.on('data', (octets: Buffer) => {
    pending = Buffer.concat([pending, octets]);
    while (pending.length >= 6 && pending.length >= 6 + pending.readUInt32BE(2)) {
      const end = 6 + pending.readUInt32BE(2);
      take(pending.readUInt16BE(0), pending.subarray(6, end));
      pending = pending.subarray(end);
    }
  });
}

function take(type: number, body: Buffer): void {
  if (type === message.cryptSetup) {
    const [key, nonce] = [field(body, 1), field(body, 2)];
    if (key && nonce) crypt = { key, nonce: Buffer.from(nonce) };
  }
  if (type === message.serverSync) console.log('synced');
  if (type === message.ping) console.log('tcp');
  if (type === message.reject) throw new Error(`rejected: ${body.toString('latin1')}`);
}

function send(type: number, body: Buffer): void {
  const head = Buffer.alloc(6);
  head.writeUInt16BE(type, 0);
  head.writeUInt32BE(body.length, 2);
  control?.write(Buffer.concat([head, body]));
}

function varint(value: number): Buffer {
  const octets: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...octets, rest]);
    octets.push((rest & 0x7f) | 0x80);
  }
}

function text(number: number, value: string): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(value.length), Buffer.from(value)]);
}

/** Of a message whose fields are all shorter than 128 octets. */
function field(body: Buffer, number: number): Buffer | undefined {
  for (let at = 0; at < body.length; ) {
    const length = body[at + 1] ?? 0;
    if (body[at] === ((number << 3) | 2)) return body.subarray(at + 2, at + 2 + length);
    at += 2 + length;
  }
  return undefined;
}

/** OCB2 (Rogaway, "Efficient instantiations of tweakable blockciphers") of less than a block: 4 octets, then the text. */
function encrypted(plain: Buffer): Buffer {
  if (crypt === undefined) throw new Error('the server has not told its keys');
  const { key, nonce } = crypt;
  for (let at = 0; at < nonce.length; at++) {
    nonce[at] = ((nonce[at] ?? 0) + 1) & 0xff;
    if (nonce[at] !== 0) break;
  }
  const block = (octets: Buffer) => {
    const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    return cipher.update(octets);
  };
  const delta = doubled(block(nonce));
  const size = Buffer.alloc(16);
  size.writeUInt32BE(plain.length * 8, 12);
  const pad = block(xor(size, delta));
  const checksum = Buffer.concat([plain, pad.subarray(plain.length)]);
  const tag = block(xor(xor(doubled(delta), delta), checksum));
  return Buffer.concat([nonce.subarray(0, 1), tag.subarray(0, 3), xor(plain, pad.subarray(0, plain.length))]);
}

function xor(a: Buffer, b: Buffer): Buffer {
  return Buffer.from(a.map((octet, at) => octet ^ (b[at] ?? 0)));
}

/** In the field of 2^128 elements. */
function doubled(octets: Buffer): Buffer {
  const carry = (octets[0] ?? 0) >> 7;
  return Buffer.from(
    octets
      .map((octet, at) => ((octet << 1) & 0xff) | ((octets[at + 1] ?? 0) >> 7))
      .map((octet, at) => (at === 15 ? octet ^ (carry * 0x87) : octet)),
  );
}
