/** Packets that filter kind 24, DTLS, is held to. Data only. */
import { datagram, type FilterVector } from '../filter-vector.ts';

/** RFC 6347, 4.2.2: type, length, message sequence, fragment offset and length. */
const hello = (version: string) =>
  `16 ${version} 0000 000000000000 0036 01 00002a 0000 000000 00002a fefd ${'5a'.repeat(40)}`;
const applicationData = `17 fefd 0001 000000000001 0020 ${'c7'.repeat(32)}`;
const encrypted = `2e 41 ${'c7'.repeat(32)}`;

export const dtlsVectors: readonly FilterVector[] = [
  {
    says: 'a ClientHello, and the records of the session',
    steps: [
      datagram(hello('feff'), 'pass'),
      datagram(hello('fefd'), 'pass'),
      datagram('14 fefd 0000 000000000002 0001 01', 'pass'),
      datagram(`16 fefd 0001 000000000000 0028 ${'c7'.repeat(40)}`, 'pass'),
      datagram(applicationData, 'pass'),
      datagram(`15 fefd 0001 000000000002 0012 ${'c7'.repeat(18)}`, 'pass'),
      datagram(encrypted, 'pass'),
    ],
  },
  { says: 'a record of a source that has not begun', steps: [datagram(applicationData, 'discard')] },
  { says: 'an encrypted record of DTLS 1.3 of a source that has not begun', steps: [datagram(encrypted, 'discard')] },
  {
    says: 'a record with a connection id from a new address (RFC 9146), and then any',
    steps: [
      datagram(`19 fefd 0001 00000000000a 5c11 0020 ${'c7'.repeat(32)}`, 'pass'),
      datagram(applicationData, 'pass'),
    ],
  },
  {
    says: 'what a known source may not send',
    steps: [
      datagram(hello('fefd'), 'pass'),
      datagram(`17 0303 0001 000000000001 0020 ${'c7'.repeat(32)}`, 'discard'),
      datagram(`1b fefd 0001 000000000001 0020 ${'c7'.repeat(32)}`, 'discard'),
      datagram('17 fefd 0001 000000000001 00', 'discard'),
      datagram(`2e 41 ${'c7'.repeat(15)}`, 'discard'),
      datagram('8000 0001 00000000 00000000', 'discard'),
    ],
  },
  { says: 'a Finished message first', steps: [datagram(hello('fefd').replace('0036 01', '0036 14'), 'discard')] },
  {
    says: 'a first flight to a client: HelloVerifyRequest; and the next type, NewSessionTicket',
    steps: [
      { ...datagram(hello('fefd').replace('0036 01', '0036 03'), 'pass'), client: 2 },
      datagram(hello('fefd').replace('0036 01', '0036 04'), 'discard'),
    ],
  },
  { says: 'a ClientHello of a later epoch', steps: [datagram(hello('fefd').replace('0000 ', '0001 '), 'discard')] },
  { says: 'a ClientHello of TLS', steps: [datagram(`16 0301 0036 01 000032 0303 ${'5a'.repeat(48)}`, 'discard')] },
  { says: 'a handshake header cut off', steps: [datagram(hello('fefd').replace(/ /g, '').slice(0, 48), 'discard')] },
  {
    says: 'running sessions are learnt while the filter settles',
    settling: true,
    steps: [
      datagram(applicationData, 'pass'),
      { ...datagram(encrypted, 'pass'), client: 2 },
      datagram('8000', 'discard'),
    ],
  },
  {
    says: 'a session of DTLS 1.2 of OpenSSL 3.0: ClientHello without and with cookie, key exchange, data',
    steps: [
      datagram(
        `
        16feff000000000000000000c6010000ba00000000000000bafefddc2ece68650ffe61793837f96a6336385e6aa5a936fa2026d1
        0e526306aa3e1e00000038c02cc030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c01300
        33009d009c003d003c0035002f00ff01000058000b000403000102000a000c000a001d0017001e00190018002300000016000000
        170000000d0030002e040305030603080708080809080a080b080408050806040105010601030302030301020103020202040205
        020602`,
        'pass',
      ),
      datagram(
        `
        16feff000000000000000100da010000ce00010000000000cefefddc2ece68650ffe61793837f96a6336385e6aa5a936fa2026d1
        0e526306aa3e1e0014db34c162bae2e48e136e66ef8b8c7d6b8bb020050038c02cc030009fcca9cca8ccaac02bc02f009ec024c0
        28006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff01000058000b000403000102000a000c00
        0a001d0017001e00190018002300000016000000170000000d0030002e040305030603080708080809080a080b08040805080604
        0105010601030302030301020103020202040205020602`,
        'pass',
      ),
      datagram(
        `
        16fefd0000000000000002002d100000210002000000000021209dc5027764ac22a22952c2b1e130d7b6c17847bef09d5c542bc1
        e5d9bbceee1614fefd000000000000000300010116fefd000100000000000000300c8cdd7048ae16129724cafbdf5ec11474c338
        416ae9410f22e2b77176cf747a07ce59d93f576dcd87a3678b26a6a51f`,
        'pass',
      ),
      datagram(
        `
        17fefd000100000000000100270c8cdd7048ae161387b56f7ce3e0094623a44b17f02727ba41fb828d87c42ada1849efcb614799`,
        'pass',
      ),
    ],
  },
  {
    says: 'a session of DTLS 1.0 of OpenSSL 3.0: ClientHello without and with cookie, key exchange, data',
    steps: [
      datagram(
        `
        16feff0000000000000000006c010000600000000000000060feffd6e23fb5b7685816c30c667aa596bf9bfa0d5837a486f0c8dc
        c1340dbad6b17c00000012c00ac0140039c009c01300330035002f00ff01000024000b000403000102000a000c000a001d001700
        1e00190018002300000016000000170000`,
        'pass',
      ),
      datagram(
        `
        16feff00000000000000010080010000740001000000000074feffd6e23fb5b7685816c30c667aa596bf9bfa0d5837a486f0c8dc
        c1340dbad6b17c0014dd263bcb6c2c84170492bec0d73efa7f5bd681a20012c00ac0140039c009c01300330035002f00ff010000
        24000b000403000102000a000c000a001d0017001e00190018002300000016000000170000`,
        'pass',
      ),
      datagram(
        `
        16feff0000000000000002002d1000002100020000000000212017cff0a9f23ea7ca964dda6581a1ec1e3bf0d75b59ac4c7e563f
        7db22a0ba74614feff000000000000000300010116feff000100000000000000446d29d211a3395e8a27e2ca831834bac1d2efa7
        952ab811743e51cbffe65d1ccf06859b6e983a8648cb90617c3bb80210414155cd8176b616cfc3e166e303377beab47621`,
        'pass',
      ),
      datagram(
        `
        17feff000100000000000100340c7c75f4a02252c0d31f9c4114e718660d4f14fe15484d37a2033c1bcead845152b85f6feaf086
        4e693e7dc599da97ceef1b7c4f`,
        'pass',
      ),
    ],
  },
  { says: 'no payload', steps: [datagram('', 'discard')] },
];
