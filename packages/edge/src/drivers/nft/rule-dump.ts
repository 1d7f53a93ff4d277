/**
 * Finds the counters in a datagram of a rule dump. Owns nothing but speed: the same walk as netlink-message.ts, by
 * offsets and without a view per attribute, because 100 k rules come by every ten seconds (890 ms with views).
 */

const headerBytes = 20;
const dumpDone = 3;
const controlError = 2;
const interruptedFlag = 0x10;
const newRule = (10 << 8) | 6;
const attributeChain = 2;
const attributeExpressions = 4;
/** `counter` and its end mark, as two words. */
const counterWords = [0x6e756f63, 0x00726574] as const;

export interface DumpEnd {
  readonly error: number;
  readonly interrupted: boolean;
}

export interface CounterSink {
  /** A rule with a counter. `chain` is the same string for consecutive rules of a chain. */
  counter(chain: string, packets: number, bytes: number): void;
}

export interface RuleDumpReader {
  /** Defined once the dump is over. */
  read(datagram: Buffer): DumpEnd | undefined;
}

export function createRuleDumpReader(sink: CounterSink): RuleDumpReader {
  let chain = '';
  let chainBytes = Buffer.alloc(0);
  let interrupted = false;

  const nameOf = (bytes: Buffer, from: number, to: number): string => {
    if (chainBytes.length !== to - from || bytes.compare(chainBytes, 0, chainBytes.length, from, to) !== 0) {
      chainBytes = Buffer.from(bytes.subarray(from, to));
      chain = bytes.toString('latin1', from, to - 1);
    }
    return chain;
  };

  const readRule = (bytes: Buffer, from: number, to: number): void => {
    let name: string | undefined;
    for (let at = from; at + 4 <= to; ) {
      const length = bytes.readUInt16LE(at);
      if (length < 4 || at + length > to) return;
      const type = bytes.readUInt16LE(at + 2) & 0x3fff;
      if (type === attributeChain) name = nameOf(bytes, at + 4, at + length);
      else if (type === attributeExpressions && name !== undefined) {
        const data = findCounter(bytes, at + 4, at + length);
        if (data !== 0) readCounter(bytes, data, name, sink);
      }
      at += (length + 3) & ~3;
    }
  };

  return {
    read(datagram) {
      for (let at = 0; at + 16 <= datagram.length; ) {
        const length = datagram.readUInt32LE(at);
        if (length < 16 || at + length > datagram.length) return undefined;
        const type = datagram.readUInt16LE(at + 4);
        if ((datagram.readUInt16LE(at + 6) & interruptedFlag) !== 0) interrupted = true;
        if (type === newRule) readRule(datagram, at + headerBytes, at + length);
        else if (type === dumpDone || type === controlError) {
          return { error: length >= 20 ? -datagram.readInt32LE(at + 16) : 0, interrupted };
        }
        at += (length + 3) & ~3;
      }
      return undefined;
    },
  };
}

/** Where the data attribute of the first counter begins; 0 when there is none. */
function findCounter(bytes: Buffer, from: number, to: number): number {
  for (let at = from; at + 4 <= to; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > to) return 0;
    // An element of the list holds the name first, then the data (nf_tables_fill_expr_info).
    const isCounter =
      length >= 4 + 12 &&
      bytes.readUInt16LE(at + 4) === 12 &&
      bytes.readUInt32LE(at + 8) === counterWords[0] &&
      bytes.readUInt32LE(at + 12) === counterWords[1];
    if (isCounter) return at + 16;
    at += (length + 3) & ~3;
  }
  return 0;
}

function readCounter(bytes: Buffer, data: number, chain: string, sink: CounterSink): void {
  let packets = 0;
  let octets = 0;
  const to = data + bytes.readUInt16LE(data);
  for (let at = data + 4; at + 12 <= to; at += 12) {
    const type = bytes.readUInt16LE(at + 2) & 0x3fff;
    if (bytes.readUInt16LE(at) !== 12) {
      at += ((bytes.readUInt16LE(at) + 3) & ~3) - 12;
      continue;
    }
    const value = bytes.readUInt32BE(at + 4) * 0x100000000 + bytes.readUInt32BE(at + 8);
    if (type === 1) octets = value;
    else if (type === 2) packets = value;
  }
  sink.counter(chain, packets, octets);
}
