/**
 * What an operator could see of attacks as they come and go, with the moments at which it could be seen: lists of attacks and
 * flowrules, and what the BGP peer has. Must never look inside Levee.
 */

import type { Flowrule } from '@levee/core/flowspec/flowrule.ts';
import { parseFlowrule } from '@levee/core/flowspec/parse-flowrule.ts';
import type { Bird } from '@levee/lab/bgp/bird.ts';
import type { RunningLevee } from '../running-levee.ts';

export interface SeenAttack {
  readonly uuid: string;
  /** Milliseconds since 1970: listed for the first time. */
  readonly listedMs: number;
  /** As it was listed last. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  last: any;
  endedMs: number | undefined;
}

/** As lists and peers show them alike, so that they can be compared. */
export function routeText(shown: unknown): { readonly text: string; readonly flowrule: Flowrule } {
  const { dst, components, action, ratelimit, redirect_target, mark_dscp } = shown as Record<string, unknown>;
  const fields = { dst, components, action, ratelimit, redirect_target, mark_dscp };
  const set = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const parsed = parseFlowrule(set);
  if (!parsed.ok)
    throw new Error(`${JSON.stringify(shown)}: ${parsed.problems.map(({ message }) => message).join(' ')}`);
  return { text: JSON.stringify(parsed.canonical), flowrule: parsed.flowrule };
}

export class Watch {
  readonly attacks = new Map<string, SeenAttack>();
  /** By destination: when the peer had a route for it first, and when it had none any more. */
  readonly announcedMs = new Map<string, number>();
  readonly withdrawnMs = new Map<string, number>();
  /** By attack: the flowrules that were active of it when any was, at the last look. */
  readonly measures = new Map<string, readonly Flowrule[]>();
  readonly #levee: RunningLevee;
  readonly #key: string;
  readonly #bird: Bird;
  readonly #looking: Promise<void>;
  #stopped = false;

  constructor(levee: RunningLevee, key: string, bird: Bird) {
    this.#levee = levee;
    this.#key = key;
    this.#bird = bird;
    this.#looking = this.#look();
    // It is told by whoever stops the watch.
    this.#looking.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (!this.#stopped) {
      await this.#lists();
      await this.#peer();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #lists(): Promise<void> {
    const attacks = await this.#levee.good('GET', '/attacks', this.#key);
    const now = Date.now();
    for (const attack of attacks) {
      const seen = this.attacks.get(attack.uuid) ?? {
        uuid: attack.uuid,
        listedMs: now,
        last: attack,
        endedMs: undefined,
      };
      this.attacks.set(attack.uuid, seen);
      seen.last = attack;
      if (attack.state === 'ended') seen.endedMs ??= now;
    }
    const active = await this.#levee.good('GET', '/flowrule?state=active', this.#key);
    for (const [attack, shown] of Map.groupBy(active as Record<string, unknown>[], (each) => each.attack_uuid)) {
      this.measures.set(
        String(attack),
        shown.map((each) => routeText(each).flowrule),
      );
    }
  }

  async #peer(): Promise<void> {
    const shown = (await this.#bird.flowCount()) === 0 ? [] : await this.#bird.flowRoutes();
    const now = Date.now();
    const places = new Set(shown.map(({ dst }) => dst.replace(/\/(32|128)$/, '')));
    for (const place of places) if (!this.announcedMs.has(place)) this.announcedMs.set(place, now);
    for (const place of this.announcedMs.keys()) {
      if (!places.has(place) && !this.withdrawnMs.has(place)) this.withdrawnMs.set(place, now);
    }
  }

  /** Those that are active now, and what the peer has now; read again until no flowrule changed meanwhile. */
  async routes(): Promise<{ readonly active: string[]; readonly atPeer: string[] }> {
    const active = async (): Promise<string[]> => {
      const list = await this.#levee.good('GET', '/flowrule?state=active', this.#key);
      return list.map((each: unknown) => routeText(each).text).sort();
    };
    for (let tries = 0; tries < 20; tries++) {
      const before = await active();
      const atPeer = (await this.#bird.flowRoutes()).map((route) => routeText(route).text).sort();
      if (JSON.stringify(before) === JSON.stringify(await active())) return { active: before, atPeer };
    }
    throw new Error('flowrules change all the time');
  }
}
