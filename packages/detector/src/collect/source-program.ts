/**
 * Owns by what the kernel chooses among sockets of one port: the source's address alone, where it would take the port as well. An
 * exporter may send templates from another port than data, and a worker has to hear both. A classic BPF program, see bpf(4) of BSD and
 * SO_ATTACH_REUSEPORT_CBPF in socket(7).
 */

const LOAD_WORD = 0x20;
const TO_INDEX = 0x07;
const XOR_INDEX = 0xac;
const MULTIPLY = 0x24;
const SHIFT_RIGHT = 0x74;
const MODULO = 0x94;
const RETURN = 0x16;
/** From here on offsets count from the network header: linux/filter.h. */
const NETWORK = 0xfff00000;
const sourceOffsets = { 4: [12], 6: [8, 12, 16, 20] } as const;
/** Neighbours in a subnet go to different sockets. */
const golden = 0x9e3779b1;

/** Of `struct sock_filter`, as many as are in it times 8 octets. Its result: the number of the socket, of so many. */
export function sourceProgram(family: 4 | 6, sockets: number): Uint8Array {
  const steps: (readonly [number, number])[] = [];
  for (const [index, offset] of sourceOffsets[family].entries()) {
    if (index > 0) steps.push([TO_INDEX, 0]);
    steps.push([LOAD_WORD, NETWORK + offset]);
    if (index > 0) steps.push([XOR_INDEX, 0]);
  }
  steps.push([MULTIPLY, golden], [SHIFT_RIGHT, 16], [MODULO, sockets], [RETURN, 0]);
  const program = new Uint8Array(new ArrayBuffer(steps.length * 8));
  const view = new DataView(program.buffer);
  for (const [index, [code, value]] of steps.entries()) {
    view.setUint16(index * 8, code, true);
    view.setUint32(index * 8 + 4, value, true);
  }
  return program;
}
