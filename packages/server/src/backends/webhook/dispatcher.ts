/**
 * Sends what is due, on the one replica that leads. Each webhook has its own few attempts under way, so that a target that
 * does not answer holds up nobody else. What is due and what became of it is in the database: a replica that takes over
 * goes on there. An attempt whose outcome could not be kept is made again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseTargetUrl } from '@levee/core/webhook/target-url.ts';
import type pg from 'pg';
import type { Lead } from '../../events/election.ts';
import type { Alongside } from '../../events/event-log.ts';
import type { LeadersTask } from '../../events/events.ts';
import {
  type DueDelivery,
  disableWebhook,
  loadFailing,
  makeDeliveries,
  nextDue,
  pruneDeliveries,
  saveOutcome,
  takeDue,
} from './deliveries.ts';
import { bodyOf, headersOf } from './message.ts';
import { Pace } from './pace.ts';
import { type RetryAfter, retryAfterSeconds } from './retry-schedule.ts';
import { ATTEMPT_MILLISECONDS, type Attempt, send } from './send.ts';
import type { JudgeTarget } from './target.ts';

export interface DispatcherServices {
  readonly pool: pg.Pool;
  readonly judge: JudgeTarget;
  readonly log?: (message: string) => void;
  readonly retryAfter?: RetryAfter;
  readonly attemptMilliseconds?: number;
  readonly pruneEveryMilliseconds?: number;
}

export interface Dispatcher {
  /** For whoever leads. */
  readonly task: LeadersTask;
  /** Makes the deliveries of new events in the transaction that writes these. */
  readonly alongside: Alongside;
  /** A webhook was changed, or has something new to send: here, or at whichever replica sends. */
  wake(webhook: string): void;
}

/** Of all webhooks. */
const ATTEMPTS_IN_ALL = 256;
const DISABLE_AFTER_SECONDS = 5 * 24 * 3600;
const PRUNE_MILLISECONDS = 60_000;
/** A word from another replica may be lost: what is due is asked for now and then in any case. */
const LOOK_MILLISECONDS = 30_000;
const CHANNEL = 'levee_webhook';
const GONE = 410;

export function createDispatcher(services: DispatcherServices): Dispatcher {
  let sending: Sending | undefined;
  return {
    task: {
      listeners: { [CHANNEL]: (webhook) => sending?.changed(webhook) },
      async run(lead) {
        sending = new Sending(lead, services);
        try {
          await sending.run();
        } finally {
          sending = undefined;
        }
      },
    },
    async alongside(client, sequence) {
      const webhooks = await makeDeliveries(client, sequence);
      return () => sending?.due(webhooks);
    },
    wake(webhook) {
      const values = [CHANNEL, webhook];
      services.pool.query({ name: 'webhook_notify', text: 'select pg_notify($1, $2)', values }).catch(() => {});
    },
  };
}

class Sending {
  readonly #signal: AbortSignal;
  readonly #services: DispatcherServices;
  readonly #pace = new Pace();
  /** Webhook → when it has something to send, in milliseconds since 1970. */
  readonly #due = new Map<string, number>();
  /** Deliveries under way. */
  readonly #underWay = new Map<string, Promise<void>>();
  #lookAt = 0;
  #pruneAt = 0;
  #failed: Error | undefined;
  #woken = false;
  #rouse: (() => void) | undefined;

  constructor({ signal }: Lead, services: DispatcherServices) {
    this.#signal = signal;
    this.#services = services;
  }

  due(webhooks: Iterable<string>): void {
    for (const webhook of webhooks) this.#put(webhook, Date.now());
    this.#wake();
  }

  changed(webhook: string): void {
    this.#pace.trust(webhook);
    this.due([webhook]);
  }

  async run(): Promise<void> {
    const { pool } = this.#services;
    const wake = () => this.#wake();
    this.#signal.addEventListener('abort', wake, { once: true });
    try {
      for (const webhook of await loadFailing(pool)) this.#pace.distrust(webhook);
      while (!this.#signal.aborted) {
        this.#woken = false;
        if (this.#failed !== undefined) throw this.#failed;
        const now = Date.now();
        if (now >= this.#lookAt) await this.#look(now);
        if (now >= this.#pruneAt) {
          await pruneDeliveries(pool);
          this.#pruneAt = now + (this.#services.pruneEveryMilliseconds ?? PRUNE_MILLISECONDS);
        }
        await this.#send();
        await this.#sleep();
      }
    } finally {
      this.#signal.removeEventListener('abort', wake);
      await Promise.allSettled(this.#underWay.values());
    }
  }

  async #look(now: number): Promise<void> {
    this.#lookAt = now + LOOK_MILLISECONDS;
    const next = await nextDue(this.#services.pool, undefined, [...this.#underWay.keys()]);
    for (const [webhook, milliseconds] of next) this.#put(webhook, now + milliseconds);
  }

  #put(webhook: string, at: number): void {
    this.#due.set(webhook, Math.min(at, this.#due.get(webhook) ?? at));
  }

  async #send(): Promise<void> {
    const now = Date.now();
    const slots = new Map<string, number>();
    let room = ATTEMPTS_IN_ALL - this.#underWay.size;
    for (const [webhook, at] of this.#due) {
      const its = Math.min(this.#pace.slots(webhook), room);
      if (its === 0 || Math.max(at, this.#pace.notBefore(webhook)) > now) continue;
      slots.set(webhook, its);
      room -= its;
    }
    if (slots.size === 0) return;
    const { pool } = this.#services;
    for (const webhook of slots.keys()) this.#due.delete(webhook);
    const taken = await takeDue(pool, slots, [...this.#underWay.keys()]);
    for (const delivery of taken) this.#begin(delivery);
    const next = await nextDue(pool, [...slots.keys()], [...this.#underWay.keys()]);
    for (const [webhook, milliseconds] of next) this.#put(webhook, Date.now() + milliseconds);
  }

  #begin(delivery: DueDelivery): void {
    this.#pace.began(delivery.webhook);
    const flight = this.#deliver(delivery)
      .catch((error: Error) => {
        this.#failed = error;
      })
      .finally(() => {
        this.#underWay.delete(delivery.uuid);
        this.#wake();
      });
    this.#underWay.set(delivery.uuid, flight);
  }

  async #deliver(delivery: DueDelivery): Promise<void> {
    const { pool, judge, attemptMilliseconds = ATTEMPT_MILLISECONDS } = this.#services;
    const { uuid, webhook } = delivery;
    const begin = performance.now();
    const at = new Date();
    const target = parseTargetUrl(delivery.url);
    const content = { ...delivery, eventId: delivery.event_id, atMilliseconds: delivery.at_ms };
    const body = bodyOf(content);
    const headers = headersOf(uuid, body, delivery.secrets, at);
    const attempt: Attempt = target.ok
      ? await send({ url: target.url, headers, body }, judge, this.#signal, attemptMilliseconds)
      : { delivered: false, error: `the address ${target.sentence}` };
    // Cut short by us: it counts for nothing.
    if (this.#signal.aborted && !attempt.delivered) return;
    const failed = {
      attempts: delivery.round_attempts + 1,
      secondsSinceFirst: delivery.round_seconds,
      askedSeconds: attempt.retryAfterSeconds,
    };
    const retrySeconds = attempt.delivered
      ? undefined
      : (this.#services.retryAfter ?? retryAfterSeconds)(failed, Math.random());
    await saveOutcome(pool, {
      uuid,
      webhook,
      attempt,
      atMilliseconds: at.getTime(),
      durationMilliseconds: performance.now() - begin,
      retrySeconds,
    });
    if (retrySeconds !== undefined) this.#put(webhook, Date.now() + retrySeconds * 1000);
    if (attempt.status === GONE) await disableWebhook(pool, webhook, 'Its server answered that it is gone (410).');
    if (!attempt.delivered && (delivery.failing_seconds ?? 0) > DISABLE_AFTER_SECONDS) {
      await disableWebhook(pool, webhook, `Nothing was delivered for 5 days; the last attempt: ${attempt.error}.`);
    }
    // Its slot is free only now: what was cancelled shall not be begun.
    this.#pace.ended(webhook, attempt.delivered, Date.now(), Math.random());
  }

  #wake(): void {
    this.#woken = true;
    this.#rouse?.();
  }

  async #sleep(): Promise<void> {
    // What comes at the same time is sent by the same statements.
    await delay(2, undefined, { signal: this.#signal }).catch(() => {});
    if (this.#woken || this.#signal.aborted) return;
    let until = Math.min(this.#lookAt, this.#pruneAt);
    for (const [webhook, at] of this.#due) {
      // One without a free slot is woken by the end of an attempt.
      if (this.#pace.slots(webhook) > 0) until = Math.min(until, Math.max(at, this.#pace.notBefore(webhook)));
    }
    if (this.#underWay.size >= ATTEMPTS_IN_ALL) until = Math.min(this.#lookAt, this.#pruneAt);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, until - Date.now()));
    this.#rouse = resolve;
    await promise;
    this.#rouse = undefined;
    clearTimeout(timer);
  }
}
