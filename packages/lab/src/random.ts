/**
 * Reproducible randomness: the same seed gives the same run on every machine. Must never read a clock or the system's
 * randomness after construction.
 */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /** `seed`: any text. */
  constructor(seed: string) {
    // FNV-1a over the text, three times with different bases, as the three words of the generator's state.
    const word = (basis: number): number => {
      let hash = basis;
      for (let i = 0; i < seed.length; i++) hash = Math.imul(hash ^ seed.charCodeAt(i), 16777619);
      return hash >>> 0;
    };
    this.a = word(2166136261);
    this.b = word(84696351);
    this.c = word(3141592653);
    for (let i = 0; i < 16; i++) this.word();
  }

  /** Small Fast Counter (sfc32), 0 … 4294967295. */
  word(): number {
    const result = (this.a + this.b + this.counter++) >>> 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) >>> 0;
    this.c = (((this.c << 21) | (this.c >>> 11)) + result) >>> 0;
    return result;
  }

  /** Both ends included. */
  integer(least: number, most: number): number {
    return least + Math.floor((this.word() / 4294967296) * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.word() / 4294967296 < probability;
  }

  pick<T>(values: readonly T[]): T {
    if (values.length === 0) throw new Error('nothing to pick from');
    return values[this.integer(0, values.length - 1)] as T;
  }

  /** One of the values, as often as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let rest = (this.word() / 4294967296) * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) {
      rest -= weight;
      if (rest < 0) return value;
    }
    return (choices.at(-1) as readonly [number, T])[1];
  }

  bits(count: number): bigint {
    let value = 0n;
    for (let i = 0; i < count; i += 32) value = (value << 32n) | BigInt(this.word());
    return value & ((1n << BigInt(count)) - 1n);
  }
}
