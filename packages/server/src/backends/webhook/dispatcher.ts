/**
 * Sends what is due, on the one replica that leads. What is due and what became of it is in the database: a replica that
 * takes over goes on there. An attempt whose outcome could not be kept is made again. Who may begin is decided by Shares
 * (accounts), Targets (servers) and Pace (a webhook's own failures): a target that does not answer holds up nobody else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { hostOf, parseTargetUrl } from '@levee/core/webhook/target-url.ts';
import type pg from 'pg';
import { Alarm } from '../../events/alarm.ts';
import type { LeadersTask } from '../../events/events.ts';
import {
  type DueDelivery,
  disableWebhook,
  loadFailing,
  loadLive,
  nextDue,
  saveOutcome,
  takeDue,
} from './deliveries.ts';
import { createFanOut } from './fan-out.ts';
import { createForgetting, type ForgetOptions } from './forget.ts';
import { bodyOf, headersOf } from './message.ts';
import { Pace } from './pace.ts';
import { type RetryAfter, retryAfterSeconds } from './retry-schedule.ts';
import { type Attempt, send } from './send.ts';
import { Shares, type Wish } from './shares.ts';
import type { JudgeTarget } from './target.ts';
import { Targets } from './targets.ts';

export interface DispatcherServices {
  readonly pool: pg.Pool;
  readonly judge: JudgeTarget;
  readonly retryAfter?: RetryAfter;
  readonly attemptMilliseconds?: number;
  readonly forgetting?: ForgetOptions;
}

/** `due`: there is something new to send. `anew`: what is known of it means nothing any more. */
export type WakeReason = 'due' | 'anew';

export interface Dispatcher {
  /** For whoever leads. */
  readonly tasks: readonly LeadersTask[];
  /** Tells whichever replica sends. */
  wake(webhook: string, reason: WakeReason): void;
}

const DISABLE_AFTER_SECONDS = 5 * 24 * 3600;
/** A word from another replica may be lost: what is due is asked for now and then in any case. */
const LOOK_MILLISECONDS = 30_000;
/** Until a target that others keep busy is tried again. */
const BUSY_MILLISECONDS = 250;
const CHANNEL = 'levee_webhook';
const GONE = 410;

export function createDispatcher(services: DispatcherServices): Dispatcher {
  const sender = new Sender(services);
  const sending: LeadersTask = {
    name: 'sending to webhooks',
    listeners: {
      [CHANNEL](payload) {
        const [reason, webhook = ''] = payload.split(' ');
        sender.ask(webhook, reason as WakeReason);
      },
    },
    run: ({ signal }) => sender.run(signal),
  };
  const fanOut = createFanOut(services.pool, (made) => {
    for (const each of made) sender.put({ ...each, milliseconds: 0 });
  });
  return {
    tasks: [sending, fanOut, createForgetting(services.pool, services.forgetting)],
    wake(webhook, reason) {
      const values = [CHANNEL, `${reason} ${webhook}`];
      services.pool.query({ name: 'webhook_notify', text: 'select pg_notify($1, $2)', values }).catch(() => {});
    },
  };
}

interface Due {
  readonly account: string;
  readonly host: string;
  /** When it has something to send, in milliseconds since 1970. */
  at: number;
}

class Sender {
  readonly #services: DispatcherServices;
  readonly #pace = new Pace();
  readonly #shares = new Shares();
  readonly #targets = new Targets();
  readonly #alarm = new Alarm();
  /** By webhook. */
  readonly #due = new Map<string, Due>();
  /** Webhooks of which it is not known what they have to send. */
  readonly #asked = new Set<string>();
  /** Deliveries under way. */
  readonly #underWay = new Map<string, Promise<void>>();
  #failed: Error | undefined;

  constructor(services: DispatcherServices) {
    this.#services = services;
  }

  put({
    webhook,
    account,
    url,
    milliseconds,
  }: {
    webhook: string;
    account: string;
    url: string;
    milliseconds: number;
  }) {
    const at = Date.now() + milliseconds;
    const present = this.#due.get(webhook);
    this.#due.set(webhook, { account, host: hostOf(new URL(url)), at: Math.min(at, present?.at ?? at) });
    this.#alarm.ring();
  }

  ask(webhook: string, reason: WakeReason): void {
    if (reason === 'anew') this.#pace.trust(webhook);
    else this.#pace.probe(webhook);
    this.#asked.add(webhook);
    this.#alarm.ring();
  }

  /** Until the lead is over; then it waits for what is under way, which is given up at once. */
  async run(signal: AbortSignal): Promise<void> {
    const { pool } = this.#services;
    this.#failed = undefined;
    this.#due.clear();
    for (const webhook of await loadFailing(pool)) this.#pace.distrust(webhook);
    for (let lookAt = 0; !signal.aborted; ) {
      if (this.#failed !== undefined) throw this.#failed;
      if (Date.now() >= lookAt) {
        await this.#look(undefined);
        await this.#forget();
        lookAt = Date.now() + LOOK_MILLISECONDS;
      }
      if (this.#asked.size > 0) {
        const asked = [...this.#asked];
        this.#asked.clear();
        await this.#look(asked);
      }
      await this.#send(signal);
      // What comes at the same time is sent by the same statements.
      await delay(2, undefined, { signal }).catch(() => {});
      await this.#alarm.sleep(this.#nextMoment(lookAt), signal);
    }
    await Promise.allSettled(this.#underWay.values());
  }

  async #look(webhooks: readonly string[] | undefined): Promise<void> {
    for (const next of await nextDue(this.#services.pool, webhooks, [...this.#underWay.keys()])) this.put(next);
  }

  /** Of webhooks that are gone or get nothing, nothing is kept. */
  async #forget(): Promise<void> {
    this.#targets.forget(Date.now());
    const failed = this.#pace.failed();
    const live = await loadLive(this.#services.pool, failed);
    for (const webhook of failed) if (!live.has(webhook)) this.#pace.forget(webhook);
  }

  *#wishes(now: number): Generator<Wish> {
    for (const [webhook, { account, host, at }] of this.#due) {
      if (Math.max(at, this.#pace.notBefore(webhook)) > now) continue;
      const most = this.#pace.slots(webhook);
      const targetMost = this.#targets.room(host, account, now);
      if (most > 0 && targetMost > 0) yield { webhook, account, most, target: host, targetMost };
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    const slots = this.#shares.divide(this.#wishes(Date.now()));
    if (slots.size === 0) return;
    const { pool } = this.#services;
    for (const webhook of slots.keys()) this.#due.delete(webhook);
    const taken = await takeDue(pool, slots, [...this.#underWay.keys()]);
    if (signal.aborted) return;
    for (const delivery of taken) this.#begin(delivery, signal);
    await this.#look([...slots.keys()]);
  }

  #begin(delivery: DueDelivery, signal: AbortSignal): void {
    const { uuid, webhook, account } = delivery;
    const entered: (() => void)[] = [];
    let delivered: boolean | undefined;
    this.#pace.began(webhook);
    this.#shares.began(account);
    const flight = this.#deliver(delivery, signal, entered)
      .then((outcome) => {
        delivered = outcome;
      })
      .catch((error: Error) => {
        // What cannot be kept is tried less and less often, like what fails.
        delivered = false;
        this.#failed = error;
      })
      .finally(() => {
        for (const leave of entered) leave();
        this.#underWay.delete(uuid);
        this.#pace.ended(webhook, delivered, Date.now(), Math.random());
        this.#shares.ended(account);
        this.#alarm.ring();
      });
    this.#underWay.set(uuid, flight);
  }

  /** Undefined: nothing was tried. Whoever is to be told that the attempt is over is put into `entered`. */
  async #deliver(delivery: DueDelivery, signal: AbortSignal, entered: (() => void)[]): Promise<boolean | undefined> {
    const { judge, attemptMilliseconds } = this.#services;
    const { uuid, webhook, account, url } = delivery;
    const begin = performance.now();
    const at = new Date();
    const enter = (names: readonly string[]) => {
      const leave = this.#targets.enter(names, account, Date.now());
      if (leave !== undefined) entered.push(leave);
      return leave !== undefined;
    };
    const busy = () => {
      this.#pace.hold(webhook, Date.now() + BUSY_MILLISECONDS);
      this.put({ webhook, account, url, milliseconds: 0 });
      return undefined;
    };
    const target = parseTargetUrl(url);
    let attempt: Attempt;
    if (target.ok) {
      const host = hostOf(target.url);
      if (!enter([host])) return busy();
      const body = bodyOf({ ...delivery, eventId: delivery.event_id, atMilliseconds: delivery.at_ms });
      const headers = headersOf(uuid, body, delivery.secrets, at);
      const sent = await send({ url: target.url, headers, body }, judge, signal, {
        milliseconds: attemptMilliseconds,
        admit: (addresses) => enter(addresses.filter((address) => address !== host)),
      });
      if (sent === 'not admitted') return busy();
      attempt = sent;
    } else {
      attempt = { delivered: false, error: `the address ${target.sentence}` };
    }
    // Cut short by us: it counts for nothing.
    if (signal.aborted && !attempt.delivered) return undefined;
    await this.#keep(delivery, attempt, at, performance.now() - begin);
    return attempt.delivered;
  }

  async #keep(delivery: DueDelivery, attempt: Attempt, at: Date, durationMilliseconds: number): Promise<void> {
    const { pool, retryAfter = retryAfterSeconds } = this.#services;
    const { uuid, webhook, account, url } = delivery;
    const failed = {
      attempts: delivery.round_attempts + 1,
      secondsSinceFirst: delivery.round_seconds,
      askedSeconds: attempt.retryAfterSeconds,
    };
    const retrySeconds = attempt.delivered ? undefined : retryAfter(failed, Math.random());
    const atMilliseconds = at.getTime();
    await saveOutcome(pool, { uuid, webhook, attempt, atMilliseconds, durationMilliseconds, retrySeconds });
    if (retrySeconds !== undefined) this.put({ webhook, account, url, milliseconds: retrySeconds * 1000 });
    if (attempt.status === GONE) await disableWebhook(pool, webhook, 'Its server answered that it is gone (410).');
    if (!attempt.delivered && (delivery.failing_seconds ?? 0) > DISABLE_AFTER_SECONDS) {
      await disableWebhook(pool, webhook, `Nothing was delivered for 5 days; the last attempt: ${attempt.error}.`);
    }
  }

  /** One without room is woken by the end of an attempt, or by its target's rate. */
  #nextMoment(lookAt: number): number {
    let next = lookAt;
    const now = Date.now();
    for (const [webhook, { account, host, at }] of this.#due) {
      if (this.#pace.slots(webhook) === 0 || !this.#shares.hasRoom(account)) continue;
      const due = Math.max(at, this.#pace.notBefore(webhook), this.#targets.notBefore(host));
      if (due > now || this.#targets.room(host, account, now) > 0) next = Math.min(next, due);
    }
    return next;
  }
}
