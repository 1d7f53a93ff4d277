/** Owns sFlow v5 datagrams that tell of UDP packets to one destination, as a router's agent sends them. Test code only. */

/** An Ethernet frame with an IPv4 packet of 100 octets, from another port of another source each time. */
function frame(destination: string, number: number): Buffer {
  const octets = Buffer.alloc(64);
  octets.writeUInt16BE(0x0800, 12);
  octets.writeUInt8(0x45, 14);
  octets.writeUInt16BE(100, 16);
  octets.writeUInt8(64, 22);
  octets.writeUInt8(17, 23);
  octets.writeUInt32BE(0xc6336400 + (number % 200), 26);
  Buffer.from(destination.split('.').map(Number)).copy(octets, 30);
  octets.writeUInt16BE(1_024 + (number % 50_000), 34);
  octets.writeUInt16BE(5_000, 36);
  octets.writeUInt16BE(80, 38);
  return octets;
}

/** `samples` packets, each of which stands for `rate`. */
export function sflow5(destination: string, sequence: number, rate: number, samples: number): Buffer {
  const head = Buffer.alloc(28);
  head.writeUInt32BE(5, 0);
  head.writeUInt32BE(1, 4);
  head.writeUInt32BE(0x7f000001, 8);
  head.writeUInt32BE(sequence, 16);
  head.writeUInt32BE(sequence * 20, 20);
  head.writeUInt32BE(samples, 24);
  const parts = [head];
  for (let i = 0; i < samples; i++) {
    const octets = frame(destination, sequence * samples + i);
    const sample = Buffer.alloc(8 + 32 + 8 + 16 + octets.length);
    sample.writeUInt32BE(1, 0);
    sample.writeUInt32BE(sample.length - 8, 4);
    sample.writeUInt32BE(sequence * samples + i, 8);
    sample.writeUInt32BE(1, 12);
    sample.writeUInt32BE(rate, 16);
    sample.writeUInt32BE((sequence * samples + i) * rate, 20);
    sample.writeUInt32BE(1, 28);
    sample.writeUInt32BE(2, 32);
    sample.writeUInt32BE(1, 36);
    sample.writeUInt32BE(1, 40);
    sample.writeUInt32BE(16 + octets.length, 44);
    sample.writeUInt32BE(1, 48);
    sample.writeUInt32BE(118, 52);
    sample.writeUInt32BE(4, 56);
    sample.writeUInt32BE(octets.length, 60);
    octets.copy(sample, 64);
    parts.push(sample);
  }
  return Buffer.concat(parts);
}
