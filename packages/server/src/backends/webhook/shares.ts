/**
 * Who may begin attempts now. Accounts take turns, and those that have the fewest under way come first: what one account's
 * targets do to it is no other's concern. Counts what is under way; knows neither time nor the database.
 */

export const IN_ALL = 256;
/** Kept for accounts that have nothing under way: they need not wait for anyone's deadline. */
export const KEPT_FOR_THE_IDLE = 32;
export const OF_AN_ACCOUNT = 16;

export interface Wish {
  readonly webhook: string;
  readonly account: string;
  /** How many it could begin. */
  readonly most: number;
  /** Wishes with the same one together may begin no more than `targetMost`. */
  readonly target: string;
  readonly targetMost: number;
}

interface Turn {
  readonly account: string;
  readonly wishes: Wish[];
  underWay: number;
}

export class Shares {
  readonly #underWay = new Map<string, number>();
  #all = 0;
  /** The order in which accounts were given something, the latest last; only of those with something under way. */
  readonly #served = new Set<string>();

  get underWay(): number {
    return this.#all;
  }

  /** Whether another attempt of the account could begin at all. */
  hasRoom(account: string): boolean {
    return roomOf(this.#underWay.get(account) ?? 0, this.#all) > 0;
  }

  began(account: string): void {
    this.#all++;
    this.#underWay.set(account, (this.#underWay.get(account) ?? 0) + 1);
    this.#served.delete(account);
    this.#served.add(account);
  }

  ended(account: string): void {
    this.#all--;
    const left = (this.#underWay.get(account) ?? 1) - 1;
    if (left > 0) return void this.#underWay.set(account, left);
    this.#underWay.delete(account);
    this.#served.delete(account);
  }

  /** Webhook → how many attempts it may begin. Nothing is counted as begun yet. */
  divide(wishes: Iterable<Wish>): ReadonlyMap<string, number> {
    const given = new Map<string, number>();
    const ofTargets = new Map<string, number>();
    let all = this.#all;
    let turns = this.#turns(wishes);
    while (turns.length > 0) {
      const left: Turn[] = [];
      for (const turn of turns) {
        const wish = roomOf(turn.underWay, all) > 0 ? nextWish(turn, given, ofTargets) : undefined;
        if (wish === undefined) continue;
        given.set(wish.webhook, (given.get(wish.webhook) ?? 0) + 1);
        const target = targetOf(wish);
        ofTargets.set(target, (ofTargets.get(target) ?? 0) + 1);
        turn.underWay++;
        all++;
        left.push(turn);
      }
      turns = left;
    }
    return given;
  }

  #turns(wishes: Iterable<Wish>): Turn[] {
    const turns = new Map<string, Turn>();
    for (const wish of wishes) {
      const { account } = wish;
      const turn = turns.get(account) ?? { account, wishes: [], underWay: this.#underWay.get(account) ?? 0 };
      turn.wishes.push(wish);
      turns.set(account, turn);
    }
    const order = new Map([...this.#served].map((account, place) => [account, place]));
    const placeOf = ({ account }: Turn) => order.get(account) ?? -1;
    return [...turns.values()].sort((a, b) => a.underWay - b.underWay || placeOf(a) - placeOf(b));
  }
}

function roomOf(underWay: number, all: number): number {
  return Math.min(OF_AN_ACCOUNT - underWay, (underWay === 0 ? IN_ALL : IN_ALL - KEPT_FOR_THE_IDLE) - all);
}

const targetOf = ({ account, target }: Wish) => `${account} ${target}`;

/** The account's webhooks take turns too: one that was given something goes to the end. */
function nextWish(
  { wishes }: Turn,
  given: ReadonlyMap<string, number>,
  ofTargets: ReadonlyMap<string, number>,
): Wish | undefined {
  for (let wish = wishes.shift(); wish !== undefined; wish = wishes.shift()) {
    if ((given.get(wish.webhook) ?? 0) >= wish.most) continue;
    if ((ofTargets.get(targetOf(wish)) ?? 0) >= wish.targetMost) continue;
    wishes.push(wish);
    return wish;
  }
  return undefined;
}
