/**
 * A database with accounts, webhooks and events, receivers, and a replica that leads: anew for each test of a file. Test
 * code only.
 */
import { after, afterEach, before, beforeEach } from 'node:test';
import type { Database } from '../../../store/database.ts';
import { newUuid } from '../../../store/new-uuid.ts';
import { type SeededProvider, seedProvider } from '../../../store/testing/seed.ts';
import { startTestPostgres, type TestPostgres } from '../../../store/testing/test-postgres.ts';
import { waitUntil } from '../../../store/testing/wait-until.ts';
import { createDispatcher, type DispatcherServices, type WakeReason } from '../dispatcher.ts';
import { createTargetJudge } from '../target.ts';
import { type Receiver, startReceiver } from './receiver.ts';

export interface Delivery {
  readonly uuid: string;
  readonly state: string;
  readonly attempts: readonly { at: string; duration_ms: number; status?: number; error?: string }[];
}

export interface NewWebhook {
  /** Absent: the user. */
  readonly owner?: string;
  readonly role?: string;
  /** Absent: all. */
  readonly events?: readonly string[];
  readonly key?: string;
}

interface Leading {
  readonly tasks: ReturnType<typeof createDispatcher>['tasks'];
  stop(): Promise<void>;
}

export const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;

export class WebhookWorld {
  provider!: SeededProvider;
  user!: string;
  operator!: string;
  readonly receivers: Receiver[] = [];
  #postgres!: TestPostgres;
  #database!: Database;
  #leading: Leading | undefined;

  get database(): Database {
    return this.#database;
  }

  async start(): Promise<void> {
    this.#postgres = await startTestPostgres();
  }

  async begin(): Promise<void> {
    this.#database = await this.#postgres.createDatabase();
    this.provider = await seedProvider(this.#database.pool);
    this.user = await this.account('user');
    this.operator = newUuid();
    await this.query(`insert into account (uuid, role, name) values ($1, 'operator', 'o')`, [this.operator]);
    await this.query(`insert into event_log (epoch, log, xid, position) values ('0badcafe', 'test', '1', 0)`);
  }

  async end(): Promise<void> {
    await this.rest();
    await Promise.all(this.receivers.splice(0).map((receiver) => receiver.close()));
  }

  stop(): Promise<unknown> {
    return this.#postgres?.stop();
  }

  async query<R extends object>(text: string, values: unknown[] = []): Promise<R[]> {
    return (await this.#database.pool.query(text, values)).rows as R[];
  }

  /** Another user of the provider's. */
  async account(name: string): Promise<string> {
    const uuid = newUuid();
    await this.query(
      `insert into account (uuid, role, provider_uuid, name, username, email, password_hash)
        values ($1, 'user', $2, $3, $3, $3 || '@example.net', 'x')`,
      [uuid, this.provider.uuid, name],
    );
    return uuid;
  }

  /** A replica that leads. */
  async lead(more: Partial<DispatcherServices> = {}): Promise<void> {
    const judge = createTargetJudge({ allow: ['127.0.0.0/8'] });
    const { tasks } = createDispatcher({ pool: this.#database.pool, judge, retryAfter: () => 0.05, ...more });
    const client = await this.#database.connect('test lead');
    const stopping = new AbortController();
    const { signal } = stopping;
    const runs = tasks.map((task) => task.run({ client, signal }));
    this.#leading = {
      tasks,
      async stop() {
        stopping.abort();
        await Promise.all(runs).finally(() => client.end());
      },
    };
  }

  /** The end of that lead. */
  async rest(): Promise<void> {
    const leading = this.#leading;
    this.#leading = undefined;
    await leading?.stop();
  }

  /** As a replica tells the one that sends. */
  wake(webhook: string, reason: WakeReason): void {
    for (const { listeners } of this.#leading?.tasks ?? []) listeners?.levee_webhook?.(`${reason} ${webhook}`);
  }

  async receiver(port = 0, host = '127.0.0.1'): Promise<Receiver> {
    const started = await startReceiver(port, host);
    this.receivers.push(started);
    return started;
  }

  async webhook(
    url: string,
    { owner = this.user, role = 'user', events = ['*'], key }: NewWebhook = {},
  ): Promise<string> {
    const uuid = newUuid();
    await this.query(
      `insert into webhook (uuid, owner_uuid, role, url, events, secret, key_uuid, after_sequence, created_at, updated_at)
        values ($1, $2, $3, $4, $5, $6, $7, (select coalesce(max(sequence), 0) from event), now(), now())`,
      [uuid, owner, role, url, events, secretOf(1), key],
    );
    return uuid;
  }

  /** As the leader writes them. Returns the first one's sequence. */
  async tell(name: string, owner = this.user, times = 1): Promise<number> {
    const [written] = await this.query<{ first: number }>(
      `with written as (
          insert into event (name, object_uuid, owner_uuid, provider_uuid, data)
          select $1, gen_random_uuid(), $2, $3, json_build_object('descr', 'é ✓') from generate_series(1, $4)
          returning sequence
        ) select min(sequence) as first from written`,
      [name, owner, this.provider.uuid, times],
    );
    for (const { news } of this.#leading?.tasks ?? []) news?.();
    return written?.first ?? 0;
  }

  deliveries(of: string): Promise<Delivery[]> {
    const text =
      'select uuid::text, state, attempts from webhook_delivery where webhook_uuid = $1 order by webhook_delivery.sequence';
    return this.query<Delivery>(text, [of]);
  }

  async statesOf(of: string): Promise<string[]> {
    return (await this.deliveries(of)).map(({ state }) => state);
  }

  ended(of: string, state: string, count = 1): Promise<void> {
    const all = async () => (await this.statesOf(of)).filter((each) => each === state).length === count;
    return waitUntil(all, `${count} ${state}`);
  }
}

/** To be called once a file, outside of tests. */
export function useWebhookWorld(): WebhookWorld {
  const world = new WebhookWorld();
  before(() => world.start());
  after(() => world.stop());
  beforeEach(() => world.begin());
  afterEach(() => world.end());
  return world;
}
