/**
 * Owns the answer to "is this address protected", as fast as it is asked once a record. IPv4: a table by /16, under it one by
 * address where only part of a /16 is protected. IPv6: disjoint ranges in order. Its size goes by the number of prefixes, never by
 * how many addresses they have.
 */

import { hostMask, type Prefix } from '@levee/core/net/prefix.ts';
import { parsePrefix } from '@levee/core/net/prefix-text.ts';

const partly = 2;

export class ProtectedSpace {
  /** By /16: 0 none of it, 1 all of it, 2 + number of its block. */
  readonly #sixteens = new Uint32Array(65_536);
  /** One bit an address of a /16. */
  readonly #blocks: Uint32Array[] = [];
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #ranges: number;

  /** Canonical prefixes; what is no prefix is left out, as the control plane has judged them. */
  constructor(prefixes: readonly string[]) {
    const wide: Prefix[] = [];
    for (const text of prefixes) {
      const parsed = parsePrefix(text);
      if (!parsed.ok) continue;
      if (parsed.prefix.family === 4) this.#addIpv4(Number(parsed.prefix.value), parsed.prefix.length);
      else wide.push(parsed.prefix);
    }
    wide.sort((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : a.length - b.length));
    const disjoint: { start: bigint; end: bigint }[] = [];
    for (const { value, length } of wide) {
      const last = disjoint.at(-1);
      if (last === undefined || value > last.end) disjoint.push({ start: value, end: value | hostMask(6, length) });
    }
    this.#ranges = disjoint.length;
    this.#starts = new Uint32Array(disjoint.length * 4);
    this.#ends = new Uint32Array(disjoint.length * 4);
    disjoint.forEach(({ start, end }, index) => {
      for (let word = 0; word < 4; word++) {
        this.#starts[index * 4 + word] = Number((start >> BigInt(96 - 32 * word)) & 0xffffffffn);
        this.#ends[index * 4 + word] = Number((end >> BigInt(96 - 32 * word)) & 0xffffffffn);
      }
    });
  }

  hasIpv4(address: number): boolean {
    const state = this.#sixteens[address >>> 16] as number;
    if (state < partly) return state === 1;
    const block = this.#blocks[state - partly] as Uint32Array;
    return ((block[(address & 0xffff) >>> 5] as number) & (1 << (address & 31))) !== 0;
  }

  hasIpv6(a: number, b: number, c: number, d: number): boolean {
    let low = 0;
    let high = this.#ranges;
    // The last range that does not start behind the address.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#starts, middle * 4, a, b, c, d) <= 0) low = middle + 1;
      else high = middle;
    }
    return low > 0 && compare(this.#ends, (low - 1) * 4, a, b, c, d) >= 0;
  }

  #addIpv4(start: number, length: number): void {
    const first = start >>> 16;
    if (length <= 16) {
      this.#sixteens.fill(1, first, first + 2 ** (16 - length));
      return;
    }
    let state = this.#sixteens[first] as number;
    if (state === 1) return;
    if (state === 0) {
      state = this.#blocks.push(new Uint32Array(2048)) - 1 + partly;
      this.#sixteens[first] = state;
    }
    const block = this.#blocks[state - partly] as Uint32Array;
    const from = start & 0xffff;
    const count = 2 ** (32 - length);
    if (count >= 32) block.fill(0xffffffff, from >>> 5, (from + count) >>> 5);
    else for (let address = from; address < from + count; address++) setBit(block, address);
  }
}

function setBit(block: Uint32Array, bit: number): void {
  block[bit >>> 5] = (block[bit >>> 5] as number) | (1 << (bit & 31));
}

/** Below 0 when the entry of `of` at `at` comes before the address. */
function compare(of: Uint32Array, at: number, a: number, b: number, c: number, d: number): number {
  if (of[at] !== a) return (of[at] as number) - a;
  if (of[at + 1] !== b) return (of[at + 1] as number) - b;
  if (of[at + 2] !== c) return (of[at + 2] as number) - c;
  return (of[at + 3] as number) - d;
}
