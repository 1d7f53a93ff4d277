/**
 * Owns which detectors there are and which partition is whose: each goes to the one that has the highest of all hashes of a name and
 * the partition, so that a detector that comes or goes moves its own share alone. All that hear the same come to the same. Never sends.
 */
import { mixed } from '../bus/partition.ts';
import { PARTITIONS } from '../bus/port.ts';

export const SIGN_MILLISECONDS = 500;
export const GONE_MILLISECONDS = 2_000;
const mostMembers = 256;

export interface Member {
  readonly ready: boolean;
  readonly linked: boolean;
}

export class Members {
  readonly #others = new Map<string, Member & { readonly heardMs: number }>();
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Others that show life, at the time of the last `share`. */
  get size(): number {
    return this.#others.size;
  }

  /** Whether it says something that was not known. */
  heard(name: string, { ready, linked }: Member, nowMs: number): boolean {
    const known = this.#others.get(name);
    if (name === this.#name || (known === undefined && this.#others.size >= mostMembers)) return false;
    this.#others.set(name, { ready, linked, heardMs: nowMs });
    return known?.ready !== ready || known.linked !== linked;
  }

  left(name: string): void {
    this.#others.delete(name);
  }

  /** Nobody could be heard meanwhile: all that were known have as long as if they had just shown life. */
  forgive(nowMs: number): void {
    for (const [name, member] of this.#others) this.#others.set(name, { ...member, heardMs: nowMs });
  }

  /** Ours of all partitions. */
  share(own: Member, nowMs: number): Set<number> {
    for (const [name, { heardMs }] of this.#others) if (nowMs - heardMs > GONE_MILLISECONDS) this.#others.delete(name);
    const all = [[this.#name, own] as const, ...this.#others].filter(([, { ready }]) => ready);
    // One whom no control plane hears finds attacks that nobody is told of.
    const linked = all.filter(([, member]) => member.linked);
    const names = (linked.length > 0 ? linked : all).map(([name]) => name);
    const ours = new Set<number>();
    if (!names.includes(this.#name)) return ours;
    for (let partition = 0; partition < PARTITIONS; partition++) {
      if (ownerOf(partition, names) === this.#name) ours.add(partition);
    }
    return ours;
  }
}

/** The same for the same names in any order. */
export function ownerOf(partition: number, names: readonly string[]): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const name of names) {
    const weight = mixed(nameHash(name) ^ mixed(partition + 1));
    if (weight < highest || (weight === highest && owner !== undefined && name < owner)) continue;
    owner = name;
    highest = weight;
  }
  return owner;
}

/** FNV-1a over UTF-16. */
function nameHash(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
