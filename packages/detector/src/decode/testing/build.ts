/** Flow datagrams and packets by hand, octet by octet, for the decoder's tests. Test code only. */

export function u8(...values: number[]): Buffer {
  return Buffer.from(values);
}

export function u16(...values: number[]): Buffer {
  const built = Buffer.alloc(values.length * 2);
  values.forEach((value, index) => {
    built.writeUInt16BE(value, index * 2);
  });
  return built;
}

export function u32(...values: number[]): Buffer {
  const built = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    built.writeUInt32BE(value, index * 4);
  });
  return built;
}

export function u64(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => u32(Math.floor(value / 2 ** 32), value % 2 ** 32)));
}

export const source4 = u8(198, 51, 100, 7);
export const destination4 = u8(203, 0, 113, 9);
export const source6 = Buffer.from('20010db8000f00000000000000000007', 'hex');
export const destination6 = Buffer.from('20010db8010000000000000000000009', 'hex');

export function udp(sourcePort: number, destinationPort: number, octets = 32): Buffer {
  return Buffer.concat([u16(sourcePort, destinationPort, 8 + octets, 0), Buffer.alloc(octets)]);
}

export function tcp(sourcePort: number, destinationPort: number, flags: number): Buffer {
  return Buffer.concat([u16(sourcePort, destinationPort), u32(1, 2), u8(0x50, flags), u16(1000, 0, 0)]);
}

export function ipv4(
  protocol: number,
  payload: Buffer,
  { fragment = 0, options = Buffer.alloc(0), total = -1 } = {},
): Buffer {
  const length = total < 0 ? 20 + options.length + payload.length : total;
  const head = [u8(0x45 + options.length / 4, 0), u16(length, 1, fragment), u8(61, protocol), u16(0)];
  return Buffer.concat([...head, source4, destination4, options, payload]);
}

export function ipv6(next: number, payload: Buffer, length = payload.length): Buffer {
  return Buffer.concat([u32(0x60000000), u16(length), u8(next, 62), source6, destination6, payload]);
}

const macs = Buffer.from('020000000001020000000002', 'hex');

/** `tags`: type and tag in turn, the outermost first. */
export function ethernet(type: number, packet: Buffer, ...tags: number[]): Buffer {
  return Buffer.concat([macs, u16(...tags, type), packet]);
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc(-content.length & 3)]);
}

export function sflow(
  samples: readonly Buffer[],
  { agent = u32(1, 0x0a000001), subAgent = 0, sequence = 1, uptime = 1000, count = samples.length } = {},
): Buffer {
  return Buffer.concat([u32(5), agent, u32(subAgent, sequence, uptime, count), ...samples]);
}

export function item(kind: number, content: Buffer, length = content.length): Buffer {
  return Buffer.concat([u32(kind, length), padded(content)]);
}

export function flowSample(records: readonly Buffer[], { rate = 100, input = 3, output = 4 } = {}): Buffer {
  return item(1, Buffer.concat([u32(1, 3, rate, 1000, 0, input, output, records.length), ...records]));
}

export function expandedSample(
  records: readonly Buffer[],
  { rate = 100, input = [0, 3], output = [0, 4] }: { rate?: number; input?: number[]; output?: number[] } = {},
): Buffer {
  return item(3, Buffer.concat([u32(1, 0, 3, rate, 1000, 0, ...input, ...output, records.length), ...records]));
}

export function headerRecord(
  protocol: number,
  header: Buffer,
  { frame = header.length + 4, stripped = 4, captured = header.length } = {},
): Buffer {
  return item(1, Buffer.concat([u32(protocol, frame, stripped, captured), header]));
}

export function netflow5(
  records: readonly Buffer[],
  { count = records.length, sequence = 0, uptime = 5000, engine = 0, sampling = 0 } = {},
): Buffer {
  return Buffer.concat([u16(5, count), u32(uptime, 0, 0, sequence), u16(engine, sampling), ...records]);
}

export function record5({
  protocol = 17,
  ports = [53, 4000],
  packets = 2,
  bytes = 200,
  first = 0,
  last = 0,
} = {}): Buffer {
  return Buffer.concat([
    Buffer.concat([source4, destination4, u32(0), u16(3, 4), u32(packets, bytes, first, last)]),
    Buffer.concat([u16(...ports), u8(0, 0x1b, protocol, 0), u16(0, 0), u8(24, 24), u16(0)]),
  ]);
}

export function netflow9(sets: readonly Buffer[], { uptime = 5000, sequence = 1, source = 7 } = {}): Buffer {
  return Buffer.concat([u16(9, sets.length), u32(uptime, 0, sequence, source), ...sets]);
}

export function ipfix(sets: readonly Buffer[], { sequence = 0, domain = 7, length = -1 } = {}): Buffer {
  const body = Buffer.concat(sets);
  return Buffer.concat([u16(10, length < 0 ? 16 + body.length : length), u32(0, sequence, domain), body]);
}

export function set(id: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([u16(id, 4 + body.length), body]);
}

/** Fields as (element, length) in turn; an element of an enterprise as (0x8000 + element, length, enterprise). */
export type Fields = readonly (readonly number[])[];

function specifiers(fields: Fields): Buffer {
  return Buffer.concat(
    fields.map(([element = 0, length = 0, enterprise]) =>
      enterprise === undefined ? u16(element, length) : Buffer.concat([u16(element, length), u32(enterprise)]),
    ),
  );
}

export function template(id: number, fields: Fields): Buffer {
  return Buffer.concat([u16(id, fields.length), specifiers(fields)]);
}

/** IPFIX's; NetFlow v9's has lengths in octets in place of numbers. */
export function optionsTemplate(id: number, scopes: Fields, fields: Fields): Buffer {
  return Buffer.concat([u16(id, scopes.length + fields.length, scopes.length), specifiers([...scopes, ...fields])]);
}

export function optionsTemplate9(id: number, scopes: Fields, fields: Fields): Buffer {
  return Buffer.concat([u16(id, scopes.length * 4, fields.length * 4), specifiers([...scopes, ...fields])]);
}
