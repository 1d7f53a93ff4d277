/** Packets that filter kind 11 is held to. */
import { type FilterVector, hexOf, type VectorStep } from '../filter-vector.ts';

const [syn, synAck, ack, pushAck, finAck, rst] = [0x02, 0x12, 0x10, 0x18, 0x11, 0x04];

function segment(
  flags: number,
  payload: string,
  expect: 'pass' | 'discard',
  more: Partial<VectorStep> = {},
): VectorStep {
  return { from: 'client', transport: 'tcp', flags, payload, expect, ...more };
}

/** The three packets of a TCP handshake. */
function opened(more: Partial<VectorStep> = {}): VectorStep[] {
  return [
    segment(syn, '', 'pass', more),
    { from: 'server', transport: 'tcp', flags: synAck, ...more },
    segment(ack, '', 'pass', more),
  ];
}

const data = (payload: string, expect: 'pass' | 'discard', more: Partial<VectorStep> = {}): VectorStep =>
  segment(pushAck, payload, expect, more);

const statusPing = '0f 00 2f 09 3132372e302e302e31 8707 01 01 00';
const login = `10 00 f405 09 ${hexOf('localhost')} 63dd 02 07 00 05 ${hexOf('Notch')}`;
const player = '203.0.113.7\x00198.51.100.9\x00069a79f444e94726a5befca90e38aaf5\x00';

/** A handshake whose address is so long, as a proxy writes it: the player's properties fill it up. */
function forwarded(characters: number): string {
  const address = `${player}[{"name":"textures","value":"`;
  const filled = `${address.padEnd(characters - 3, 'A')}"}]`;
  return `${hexOf(variable(characters + 8))}00 2f ${hexOf(variable(characters) + filled)} 63dd 02`;
}

/** A VarInt of two octets. */
function variable(value: number): string {
  return String.fromCharCode((value & 0x7f) | 0x80, value >> 7);
}
const encrypted = 'c1d2e3f4a5b69788';
const junk = 'deadbeef deadbeef deadbeef';

export const minecraftJavaVectors: readonly FilterVector[] = [
  {
    says: 'a server list ping, from gamedig 5.3.3',
    steps: [...opened(), data(statusPing, 'pass'), data('09 01 00', 'pass')],
  },
  {
    says: 'a login (wiki.vg, as mcproto 0.9 sends it), and whatever follows on that connection',
    steps: [...opened(), data(login, 'pass'), data(encrypted, 'pass'), segment(finAck, '', 'pass')],
  },
  {
    says: 'a handshake with a long address, as Forge clients and proxies send it',
    steps: [...opened(), data(`8902 00 f405 8002 ${'61'.repeat(256)} 63dd 02`, 'pass'), data(encrypted, 'pass')],
  },
  {
    says: "a handshake of BungeeCord's forwarding (1,299 octets: address, number and signed skin of a player), then the login",
    steps: [...opened(), data(forwarded(1226), 'pass'), data(encrypted, 'pass')],
  },
  {
    says: 'the first segment of the longest one that servers read',
    steps: [...opened(), data(`8b 80 02 00 2f ff ff 01 ${hexOf(player)} ${'41'.repeat(1200)}`, 'pass')],
  },
  {
    says: 'a transfer from another server (intent 3)',
    steps: [...opened(), data(`10 00 fe05 09 ${hexOf('localhost')} 63dd 03`, 'pass')],
  },
  {
    says: 'the ping of 1.4 to 1.6',
    steps: [...opened(), data(`fe 01 fa 000b ${hexOf('\0M\0C\0|\0P\0i\0n\0g\0H\0o\0s\0t')} 0007`, 'pass')],
  },
  { says: 'the ping of still older clients', steps: [...opened(), data('fe', 'pass')] },
  {
    says: 'a length that TCP sent alone, then the rest',
    steps: [...opened(), data('0f', 'pass'), data(statusPing.slice(3), 'pass'), data(encrypted, 'pass')],
  },
  {
    says: 'a running connection while the filter settles',
    settling: true,
    steps: [data(encrypted, 'pass'), { from: 'server', transport: 'tcp', flags: ack }, data(encrypted, 'pass')],
  },
  { says: 'data that is no handshake', steps: [...opened(), data(junk, 'discard')] },
  {
    says: 'data of another connection of a source that began one well',
    steps: [
      ...opened(),
      data(statusPing, 'pass'),
      ...opened({ clientPort: 40_001 }),
      data(junk, 'discard', { clientPort: 40_001 }),
    ],
  },
  {
    says: 'no data, but the end of a connection that began nothing',
    steps: [...opened(), segment(ack, '', 'pass'), segment(finAck, '', 'pass')],
  },
  { says: 'a handshake without a connection', steps: [data(statusPing, 'discard')] },
  {
    says: 'ACKs, SYN-ACKs and resets of no connection',
    steps: [segment(ack, '', 'discard'), segment(synAck, '', 'discard'), segment(rst, '', 'discard')],
  },
  { says: 'a SYN with data', steps: [segment(syn, statusPing, 'discard')] },
  {
    says: "a request of HTTP, and a browser's TLS",
    steps: [...opened(), data(hexOf('GET / HTTP/1.1\r\n'), 'discard'), data('1603010200010001fc0303', 'discard')],
  },
  {
    says: 'a PROXY protocol header',
    steps: [...opened(), data(hexOf('PROXY TCP4 192.0.2.1 203.0.113.7 4000 25565\r\n'), 'discard')],
  },
  { says: 'a length that no handshake has', steps: [...opened(), data('05 00 2f 00 01 01', 'discard')] },
  { says: 'a length in three octets that no handshake has', steps: [...opened(), data('808003 00 2f', 'discard')] },
  { says: 'a length in four octets', steps: [...opened(), data('80808001 00 2f', 'discard')] },
  { says: 'a long length of no handshake', steps: [...opened(), data('9109 01 2f', 'discard')] },
  { says: 'a packet of another number', steps: [...opened(), data('0f 01 2f 09 3132', 'discard')] },
  { says: 'one octet that begins no handshake', steps: [...opened(), data('02', 'discard')] },
];
