/**
 * Owns the experiment behind crash.test.ts and crash.long.ts: processes are killed at random moments while rules are
 * created and deleted, and real packets watch the kernel all the time. Throws at the first broken promise:
 *
 * - a write that was answered is in the interface and in the kernel afterwards, exactly once;
 * - a packet that a rule in force forbids is never forwarded, not even for a moment;
 * - everything comes back without help.
 */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { RouterPath } from '@levee/lab/router-path.ts';
import { PacketProbe, textOf } from './packet-probe.ts';
import { RunningLevee, until } from './running-levee.ts';

export interface CrashReport {
  readonly kills: Record<Victim, number>;
  readonly created: number;
  readonly deleted: number;
  readonly datagrams: number;
  /** From a kill to the first write answered afterwards. */
  readonly longestSilenceMilliseconds: number;
}

type Victim = 'control' | 'edge' | 'both';

const prefix = '10.64.0.0/16';
const sentinel = '10.64.255.254';
const recoveryMilliseconds = 90_000;

interface Guarded {
  readonly destination: string;
  uuid?: string;
  state: 'asked' | 'answered' | 'in force' | 'deleting' | 'deleted';
}

export async function crashRounds(rounds: number): Promise<CrashReport> {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'crash' });
  using probe = new PacketProbe(path);
  const levee = await RunningLevee.start({
    environment: { LEVEE_EDGE_NETNS: path.router.name, LEVEE_RATE_LIMIT: 'off' },
  });
  try {
    const { key } = await levee.createProvider('Crash', [prefix]);
    const experiment = new Experiment(levee, probe, key);
    return await experiment.run(rounds);
  } catch (error) {
    throw new Error(`${(error as Error).message}\nlevee said:\n${levee.stderr.slice(-4_000)}`, { cause: error });
  } finally {
    await levee.stop();
  }
}

class Experiment {
  readonly #levee: RunningLevee;
  readonly #probe: PacketProbe;
  readonly #key: string;
  readonly #rules: Guarded[] = [];
  readonly #over = new AbortController();
  #answered = 0;
  #datagrams = 0;

  constructor(levee: RunningLevee, probe: PacketProbe, key: string) {
    this.#levee = levee;
    this.#probe = probe;
    this.#key = key;
  }

  async run(rounds: number): Promise<CrashReport> {
    const kills: Record<Victim, number> = { control: 0, edge: 0, both: 0 };
    let longestSilenceMilliseconds = 0;
    const broken = new Promise<never>((_, reject) => {
      const fail = (error: unknown) => {
        this.#over.abort();
        reject(error);
      };
      this.#write().catch(fail);
      this.#watch().catch(fail);
    });
    const kill = async () => {
      for (let round = 0; round < rounds; round++) {
        await delay(randomInt(50, 1_200));
        const victim = (['control', 'edge', 'both'] as const)[round % 3] ?? 'both';
        const killed = await this.#kill(victim);
        kills[victim]++;
        await this.#answerAfter(killed);
        longestSilenceMilliseconds = Math.max(longestSilenceMilliseconds, performance.now() - killed.at);
      }
    };
    try {
      await Promise.race([kill(), broken]);
    } finally {
      this.#over.abort();
    }
    await this.#settle();
    const deleted = this.#rules.filter((rule) => rule.state === 'deleted').length;
    return { kills, created: this.#rules.length, deleted, datagrams: this.#datagrams, longestSilenceMilliseconds };
  }

  async #kill(victim: Victim): Promise<{ at: number; answered: number }> {
    let pids: number[] = [];
    await until(`a process to kill (${victim})`, recoveryMilliseconds, () => {
      const { control, edge } = this.#levee.processes;
      const wanted = victim === 'control' ? [control] : victim === 'edge' ? [edge] : [control, edge];
      pids = wanted.filter((pid) => pid !== undefined);
      return pids.length === wanted.length;
    });
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    return { at: performance.now(), answered: this.#answered };
  }

  #answerAfter({ answered }: { answered: number }): Promise<void> {
    return until('a write to be answered after a kill', recoveryMilliseconds, () => this.#answered > answered);
  }

  /** Creates rules, and deletes every third that is in force, one request after the other. */
  async #write(): Promise<void> {
    for (let number = 0; !this.#over.signal.aborted; number++) {
      const victim = number % 3 === 2 ? this.#pickInForce() : undefined;
      if (victim === undefined) await this.#create(textOf(0x0a400000 + 1 + this.#rules.length));
      else await this.#delete(victim);
      this.#answered++;
      await delay(10);
    }
  }

  #pickInForce(): Guarded | undefined {
    const candidates = this.#rules.filter((rule) => rule.state === 'in force');
    return candidates.length < 20 ? undefined : candidates[randomInt(candidates.length)];
  }

  async #create(destination: string): Promise<void> {
    const rule: Guarded = { destination, state: 'asked' };
    this.#rules.push(rule);
    const fields = { dst: destination, protocol: 'udp', action: 'drop' };
    const headers = { 'idempotency-key': randomUUID() };
    const answer = await this.#untilAnswered('POST', '/firewall/rule', [200], fields, headers);
    rule.uuid = answer.uuid;
    rule.state = 'answered';
  }

  async #delete(rule: Guarded): Promise<void> {
    rule.state = 'deleting';
    // 404: it was deleted, and swept, by a request whose answer got lost.
    await this.#untilAnswered('DELETE', `/firewall/rule/${rule.uuid}`, [200, 404]);
    rule.state = 'deleted';
  }

  /** Repeats a request whose answer got lost, or that nobody could take: 503 is the only refusal that may come. */
  async #untilAnswered(
    method: string,
    route: string,
    good: readonly number[],
    body?: object,
    headers?: object,
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  ): Promise<any> {
    const deadline = Date.now() + recoveryMilliseconds;
    for (let last = ''; ; ) {
      try {
        const answer = await this.#levee.request(method, route, this.#key, body, headers);
        if (good.includes(answer.status)) return answer.body;
        last = `${answer.status} ${JSON.stringify(answer.body)}`;
        assert.equal(answer.status, 503, `${method} ${route} answered ${last}`);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        last = String((error as Error).cause ?? error);
      }
      if (Date.now() > deadline) throw new Error(`${method} ${route} was not answered in time: ${last}`);
      await delay(25);
    }
  }

  /** Sends to every guarded destination, over and over: one that was dropped once must be dropped until its end. */
  async #watch(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const watched = this.#rules.filter((rule) => rule.state === 'answered' || rule.state === 'in force');
      const inForce = new Set(watched.filter((rule) => rule.state === 'in force'));
      const recent = [...inForce].slice(-100).concat(watched.filter((rule) => !inForce.has(rule)));
      const arrived = await this.#probe.reach(
        recent.map((rule) => rule.destination),
        sentinel,
      );
      this.#datagrams += recent.length;
      for (const rule of recent) {
        if (arrived.has(rule.destination)) {
          const broken = inForce.has(rule) && rule.state === 'in force';
          assert.ok(!broken, `a packet to ${rule.destination} was forwarded although its rule was in force`);
        } else if (rule.state === 'answered') rule.state = 'in force';
      }
      await delay(10);
    }
  }

  /** All is quiet: interface and kernel must come to hold exactly what was answered. */
  async #settle(): Promise<void> {
    // The last request may still be under way.
    await until('the last write to be answered', recoveryMilliseconds, () =>
      this.#rules.every((rule) => rule.state !== 'asked' && rule.state !== 'deleting'),
    );
    const kept = this.#rules.filter((rule) => rule.state !== 'deleted');
    const gone = this.#rules.filter((rule) => rule.state === 'deleted');
    let missing = '';
    const holds = async () => {
      const listed = (await this.#untilAnswered('GET', '/firewall/rule', [200])) as {
        uuid: string;
        dst: string;
        state: string;
      }[];
      const active = listed.filter((rule) => rule.state === 'active');
      const other = listed.find((rule) => rule.state !== 'active');
      missing = other === undefined ? `${active.length} listed` : JSON.stringify(other);
      return (
        other === undefined &&
        sameSet(
          active.map((rule) => rule.uuid),
          kept.map((rule) => rule.uuid ?? ''),
        )
      );
    };
    await until('the interface to hold exactly what was answered', recoveryMilliseconds, holds).catch((error) => {
      throw new Error(`${error.message}: ${kept.length} rules were answered and not deleted; ${missing}`);
    });
    const all = [...kept, ...gone].map((rule) => rule.destination);
    const arrived = await this.#probe.reach(all, sentinel);
    this.#datagrams += all.length;
    const leaking = kept.filter((rule) => arrived.has(rule.destination));
    assert.deepEqual(leaking, [], 'the interface says active, and packets pass');
    const blocked = gone.filter((rule) => !arrived.has(rule.destination));
    assert.deepEqual(blocked, [], 'a deleted rule still drops');
  }
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const set = new Set(a);
  return a.length === b.length && set.size === a.length && b.every((each) => set.has(each));
}
