/**
 * Follows the change log for the BGP speaker: announces flowrules and withdraws them, and compares everything when the
 * speaker was away, now and then, and after any doubt. One a replica; one of them leads. Never decides which routes:
 * that is decide-routes.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RouteOptions } from '@levee/core/flowspec/bgp-route.ts';
import type { ChangesSince } from '../../store/change-log.ts';
import type { ChangeTail } from '../../store/change-tail.ts';
import type { Database } from '../../store/database.ts';
import { createHeldLeads } from '../../store/held-leads.ts';
import type { BgpSpeaker, SpeakerSession, SpeakerTrouble } from './port.ts';
import { createRouteKeeper, type Kept, type RouteKeeper } from './route-keeper.ts';
import { saveStanding } from './speaker-standing.ts';

export interface BgpOptions {
  readonly database: Pick<Database, 'pool' | 'connect'>;
  readonly tail: Pick<ChangeTail, 'subscribe' | 'wake'>;
  readonly speaker: BgpSpeaker;
  readonly routes: RouteOptions;
  readonly log: (message: string) => void;
  readonly compareEveryMilliseconds?: number;
  /** How long the speaker may be away before it is said. */
  readonly patienceMilliseconds?: number;
}

export interface BgpReconciler {
  /** Routes stay as they are. */
  stop(): Promise<void>;
}

const lead = 'bgp_speaker';
/** How soon a replica takes over from one that died. */
const lockEveryMilliseconds = 1_000;
/** While the speaker is away: it has its routes back before its peers are. */
const retryMilliseconds = 50;
/** While another program announces routes that are wanted: nothing tells when it has withdrawn them. */
const blockedMilliseconds = 2_000;
/** That all is well, or still not, is noted so often. */
const noteEveryMilliseconds = 10_000;
/** From here on looking at everything is cheaper than at each. */
const mostAtOnce = 5_000;

export function startBgp(options: BgpOptions): BgpReconciler {
  const reconciler = new Reconciler(options);
  const running = reconciler.run();
  return {
    async stop() {
      reconciler.stop();
      await running;
    },
  };
}

interface Connection {
  readonly session: SpeakerSession;
  readonly keeper: RouteKeeper;
}

class Reconciler {
  readonly #options: Required<BgpOptions>;
  readonly #lock;
  readonly #leave: () => void;
  #stopped = false;
  #leads = false;
  #rouse: (() => void) | undefined;
  #awake = false;
  #connection: Connection | undefined;
  /** What the log told and nobody has looked at yet. */
  #changed = new Set<string>();
  #everything = true;
  #peersChanged = false;
  #compareAt = 0;
  #lockAt = 0;
  #noteAt = 0;
  #awaySince: number | undefined;
  #trouble: string | undefined;
  #failing = false;

  constructor(options: BgpOptions) {
    this.#options = { compareEveryMilliseconds: 30_000, patienceMilliseconds: 1_000, ...options };
    this.#lock = createHeldLeads(options.database, {
      name: 'levee bgp',
      log: options.log,
      onLost: () => {
        this.#leads = false;
        this.#drop();
      },
    });
    this.#leave = options.tail.subscribe({
      changes: (changes) => this.#heard(changes),
      gap: () => {
        this.#everything = true;
        this.#wake();
      },
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#leave();
    this.#drop();
    this.#rouse?.();
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#awake = false;
      try {
        await this.#round();
        this.#failing = false;
      } catch (error) {
        // The database is away, or a bug: neither must end it. How far it came is not known.
        this.#everything = true;
        if (!this.#failing && !this.#stopped) {
          this.#options.log(`flowrules cannot be looked after: ${(error as Error).message}`);
        }
        this.#failing = true;
        if (!this.#stopped) await delay(250);
      }
      await this.#sleep();
    }
    await this.#lock.stop();
    await this.#options.speaker.close();
  }

  #wake(): void {
    this.#awake = true;
    this.#rouse?.();
  }

  #heard({ entries, unsettled }: ChangesSince): void {
    let found = false;
    for (const { kind, objectUuid } of [...entries, ...unsettled]) {
      if (kind !== 'flowrule') continue;
      found = true;
      if (this.#changed.size < mostAtOnce) this.#changed.add(objectUuid);
      else this.#everything = true;
    }
    if (found && this.#leads) this.#wake();
    else if (found && !this.#leads) this.#changed.clear();
  }

  async #round(): Promise<void> {
    if (Date.now() >= this.#lockAt) {
      const held = (await this.#lock.hold([lead])).has(lead);
      if (held && !this.#leads) this.#everything = true;
      this.#leads = held;
      this.#lockAt = Date.now() + lockEveryMilliseconds;
    }
    if (!this.#leads || this.#stopped) return;
    this.#connection ??= await this.#connect();
    if (this.#connection === undefined) return;
    await this.#keep(this.#connection);
  }

  async #connect(): Promise<Connection | undefined> {
    const { speaker, database, routes } = this.#options;
    const opened = await speaker.connect(() => {
      this.#peersChanged = true;
      this.#wake();
    });
    if (!opened.ok) {
      await this.#away(opened.reason);
      return undefined;
    }
    const { session } = opened;
    if (this.#stopped || !this.#leads) {
      session.close();
      return undefined;
    }
    const connection = {
      session,
      keeper: createRouteKeeper({ pool: database.pool, session, routes, prove: this.#lock.prove }),
    };
    void session.ended.then((why) => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#everything = true;
      if (!this.#stopped) this.#options.log(`the BGP speaker: ${why}`);
      this.#wake();
    });
    this.#everything = true;
    return connection;
  }

  async #keep({ session, keeper }: Connection): Promise<void> {
    const isDue = this.#everything || Date.now() >= this.#compareAt;
    const changed = [...this.#changed];
    if (isDue || changed.length > 0) {
      this.#changed = new Set();
      this.#everything = false;
      let kept: Kept | SpeakerTrouble;
      try {
        kept = isDue ? await keeper.whole() : await keeper.some(changed);
      } catch (error) {
        this.#everything = true;
        throw error;
      }
      if (!kept.ok) {
        this.#drop();
        await this.#away(kept.reason);
        return;
      }
      const now = Date.now();
      if (isDue) this.#compareAt = now + this.#options.compareEveryMilliseconds;
      if (kept.areBlocked) this.#compareAt = Math.min(this.#compareAt, now + blockedMilliseconds);
      if (kept.hasWritten) this.#options.tail.wake();
    }
    await this.#well(session, keeper);
  }

  async #well(session: SpeakerSession, keeper: RouteKeeper): Promise<void> {
    const { speaker, log } = this.#options;
    const recovered = this.#trouble !== undefined;
    this.#awaySince = undefined;
    this.#trouble = undefined;
    if (!recovered && !this.#peersChanged && Date.now() < this.#noteAt) return;
    this.#peersChanged = false;
    await this.#note({ version: session.version, peers: session.peers(), counts: keeper.counts });
    if (recovered) log(`${speaker.name} has everything again`);
  }

  async #away(reason: string): Promise<void> {
    if (this.#stopped || !this.#leads) return;
    const { speaker, log, patienceMilliseconds } = this.#options;
    this.#everything = true;
    this.#awaySince ??= Date.now();
    if (Date.now() - this.#awaySince < patienceMilliseconds) return;
    if (this.#trouble === reason && Date.now() < this.#noteAt) return;
    if (this.#trouble === undefined) log(`${speaker.name} (${speaker.where}) is away: ${reason}`);
    this.#trouble = reason;
    await this.#note({ trouble: reason });
  }

  async #note(found: {
    readonly trouble?: string;
    readonly version?: string;
    readonly peers?: ReturnType<SpeakerSession['peers']>;
    readonly counts?: RouteKeeper['counts'];
  }): Promise<void> {
    const { speaker, database, tail } = this.#options;
    await saveStanding(database.pool, {
      name: speaker.name,
      address: speaker.where,
      version: found.version,
      trouble: found.trouble,
      peers: found.peers,
      flowRoutes: found.counts?.flow ?? 0,
      blackholeRoutes: found.counts?.blackhole ?? 0,
      foreignRoutes: found.counts?.foreign ?? 0,
    });
    this.#noteAt = Date.now() + noteEveryMilliseconds;
    tail.wake();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#everything = true;
    connection?.session.close();
  }

  async #sleep(): Promise<void> {
    const now = Date.now();
    const isAway = this.#leads && this.#connection === undefined;
    const until = isAway
      ? now + retryMilliseconds
      : Math.min(this.#lockAt, this.#leads ? this.#compareAt : this.#lockAt);
    if (this.#stopped || (!isAway && (this.#awake || until <= now))) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(until - now, 1));
    this.#rouse = () => {
      if (this.#stopped || !isAway) resolve();
    };
    await promise;
    this.#rouse = undefined;
    clearTimeout(timer);
  }
}
