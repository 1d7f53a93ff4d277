/** A zone's server in memory, with the ways in which real ones fail. Test code only. */
import { applyByHalves, type Sent } from '../halving.ts';
import { away, type PtrChange, refusedAll, type Trouble, type ZoneServer } from '../port.ts';

export interface FakeServer extends ZoneServer {
  readonly records: Map<string, string>;
  /** What every request meets; undefined: it works. */
  trouble: Trouble | undefined;
  /** Owners whose change is refused. */
  readonly refuses: Set<string>;
  /** How many messages with changes arrived. */
  messages: number;
}

export function createFakeServer(zone: string): FakeServer {
  let closed = false;
  const troubled = (): Trouble | undefined => (closed ? away('the connection was given up') : self.trouble);
  async function send(changes: readonly PtrChange[]): Promise<Sent> {
    const trouble = troubled();
    if (trouble !== undefined) return trouble;
    self.messages += 1;
    const bad = changes.find(({ owner }) => self.refuses.has(owner) || !`.${owner}`.endsWith(`.${zone}`));
    if (bad !== undefined) return { ok: 'refused', reason: `The fake refuses ${bad.owner}.` };
    for (const { owner, target } of changes) {
      if (target === undefined) self.records.delete(owner);
      else self.records.set(owner, target);
    }
    return { ok: true };
  }
  const self: FakeServer = {
    records: new Map(),
    trouble: undefined,
    refuses: new Set(),
    messages: 0,
    apply: (changes, budget) => applyByHalves(changes, budget, send),
    async readBack(owners) {
      const targets = owners.map((owner): [string, string[]] => {
        const target = self.records.get(owner);
        return [owner, target === undefined ? [] : [target]];
      });
      return troubled() ?? { ok: true, targets: new Map(targets) };
    },
    probe: async () => troubled() ?? { ok: true },
    close() {
      closed = true;
    },
  };
  return self;
}

export const fakeAway = away('the fake is away');
export const fakeRefusal = refusedAll('the fake refuses everything');
