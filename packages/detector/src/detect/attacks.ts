/**
 * Owns which attacks there are: at most one a destination. Begins them from what was found too much, has vectors join them, takes
 * over those of a detector before, ends them. What a finding means for which destination is decided here (decision 0131).
 */
import type { DetectedAttack, OngoingAttack } from '@levee/contract/detector.ts';
import { judgeSubnet, type Member } from '@levee/core/detection/carpet.ts';
import { CONFIRMING_JUDGEMENTS, type Excess, limitsOf } from '@levee/core/detection/judge.ts';
import { wordsOf } from '@levee/core/detection/outermost.ts';
import { keysOfEach } from '@levee/core/detection/profile.ts';
import { TOTAL, vectors as vectorNames } from '@levee/core/detection/vector.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import { SLOT_MILLISECONDS, type SlotProfile } from '../bus/port.ts';
import { AddressAttackCounts } from './address-attack-counts.ts';
import { adoptedAttack } from './adopted-attack.ts';
import { Attack, type Threshold } from './attack.ts';
import { startOf } from './attack-start.ts';
import type { Baselines } from './baselines.ts';
import { EndedAttacks } from './ended-attacks.ts';
import type { Finding, Findings } from './examine.ts';
import { type Places, prefixAt } from './places.ts';
import { countMembers, membersOf } from './subnet-members.ts';
import { type Traffic, tagOf, WindowSums } from './traffic.ts';

export const MOST_ATTACKS = 4_096;
const none = -1;
const sums = new WindowSums();

export interface AttackHost {
  readonly traffic: Traffic;
  readonly places: Places;
  readonly baselines: Baselines;
  /** Of a slot's start, since 1970. */
  slotMs(slot: number): number;
  newId(): string;
  /** What was told in this slot of a destination that had no attack before it. */
  profilesOf(dst: string): readonly SlotProfile[];
  tell(attack: DetectedAttack): void;
  ended(attack: Attack): void;
}

export class Attacks {
  /** Those that did not fit, since the start. */
  refused = 0;
  readonly #host: AttackHost;
  readonly #byDestination = new Map<string, Attack>();
  /** By the number that the traffic table holds. */
  readonly #numbered: (Attack | undefined)[] = [];
  readonly #free: number[] = [];
  /** Of each kind, that each profile keeps. */
  #keys = keysOfEach(0);
  readonly #ended = new EndedAttacks();

  constructor(host: AttackHost) {
    this.#host = host;
  }

  get size(): number {
    return this.#byDestination.size;
  }

  all(): Iterable<Attack> {
    return this.#byDestination.values();
  }

  /** That of exactly this destination. */
  of(dst: string): Attack | undefined {
    return this.#byDestination.get(dst);
  }

  /** That which the address is attacked in, its own or its subnet's. */
  covering(destination: number): Attack | undefined {
    return this.#at(destination) ?? this.#at(this.#host.traffic.aggregates[destination] as number);
  }

  /** Begins, joins, measures and ends, after the slot's traffic was counted and examined. `sightedMs`: since when all is seen. */
  judge(findings: Findings, nowMs: number, sightedMs: number): void {
    const { traffic, baselines } = this.#host;
    const slotMs = this.#host.slotMs(traffic.slot);
    const begun = new Set<Attack>();
    // Subnets first: what is spread over them must not begin as attacks on a few of their addresses.
    this.#judgeSubnets(findings, begun, nowMs);
    this.#judgeAddresses(findings.addresses, begun, nowMs);
    this.#fitProfiles();
    countMembers(traffic, this.#byDestination.values());
    for (const attack of this.#byDestination.values()) {
      if (begun.has(attack)) attack.countBack(traffic, this.#host.slotMs);
      attack.measure(traffic, baselines, slotMs);
    }
    for (const attack of begun) {
      for (const profile of this.#host.profilesOf(attack.dst)) attack.profile(profile.vector, profile, nowMs);
      this.#host.tell(attack.report('started', nowMs));
    }
    const endMs = slotMs + SLOT_MILLISECONDS;
    for (const attack of [...this.#byDestination.values()]) {
      const endedMs = attack.endedMs(endMs, sightedMs);
      if (endedMs !== undefined) this.#end(attack, endedMs, nowMs);
      else if (!begun.has(attack) && attack.isDue(nowMs)) this.#host.tell(attack.report('changed', nowMs));
    }
  }

  /**
   * Of `ongoing`, those that are not known: they go on here under their name. One on a destination that is attacked already, or that
   * nothing is measured of any more, is ended: there is one attack a destination.
   */
  takeOver(ongoing: readonly OngoingAttack[], isOurs: (destination: Prefix) => boolean, nowMs: number): void {
    const known = new Set([...this.#byDestination.values()].map(({ id }) => id));
    for (const each of ongoing) {
      if (this.#ended.has(each.id)) this.#tellEndAgain(each, nowMs);
      if (known.has(each.id) || this.#ended.has(each.id)) continue;
      const read = parsePrefix(each.dst);
      if (!read.ok || !isOurs(read.prefix)) continue;
      const attack = adoptedAttack(each, formatPrefix(read.prefix), nowMs);
      const row = this.#byDestination.has(attack.dst) ? none : this.#rowOf(read.prefix);
      if (row !== none && each.told === undefined) attack.threshold = this.#thresholdOf(attack, row);
      if (row === none || attack.vectors.size === 0 || !this.#keep(attack, row)) {
        this.#ended.add(attack, nowMs, nowMs);
        this.#host.tell(attack.report('ended', nowMs, Math.max(nowMs, attack.startedMs)));
      }
    }
    this.relimit();
  }

  /** The clock was set by so much: what is still to be measured is by the new one. */
  stepped(milliseconds: number): void {
    for (const attack of this.#byDestination.values()) attack.stepped(milliseconds);
  }

  /** Policies are others: what an attack lives of is another rate. */
  relimit(): void {
    for (const attack of this.#byDestination.values()) {
      for (const [vector, state] of attack.vectors) {
        const limits = this.#limits(attack.destination, vector);
        const other = state.exceeded.metric === 'pps' ? 'bps' : 'pps';
        const metric = Number.isFinite(limits[state.exceeded.metric]) ? state.exceeded.metric : other;
        state.exceeded = { metric, value: limits[metric] };
      }
    }
  }

  /** Traffic is held anew: finds the destinations again. Attacks on what is not protected any more end. */
  attach(nowMs: number): void {
    for (const [number, attack] of this.#numbered.entries()) {
      if (attack === undefined) continue;
      const read = parsePrefix(attack.dst);
      const row = read.ok ? this.#rowOf(read.prefix) : none;
      if (row === none) {
        attack.destination = none;
        this.#end(attack, Math.max(attack.aboveHalfMs, attack.startedMs), nowMs);
      } else this.#place(attack, row, number);
    }
  }

  /** Without a word: somebody else detects them now. */
  release(isOurs: (destination: Prefix) => boolean): void {
    for (const attack of [...this.#byDestination.values()]) {
      const read = parsePrefix(attack.dst);
      if (read.ok && !isOurs(read.prefix)) this.#drop(attack);
    }
  }

  /** Nothing was heard for too long: what is not seen any more is not kept up. */
  endAll(nowMs: number): void {
    for (const attack of [...this.#byDestination.values()]) {
      this.#end(attack, Math.max(attack.aboveHalfMs, attack.startedMs), nowMs);
    }
  }

  /** Memory for what attacks look like is bounded for all of them together. */
  #fitProfiles(): void {
    let profiles = 0;
    for (const { vectors } of this.#byDestination.values()) profiles += vectors.size;
    const keys = keysOfEach(profiles);
    if (keys === this.#keys) return;
    this.#keys = keys;
    for (const attack of this.#byDestination.values()) attack.fit(keys);
  }

  #at(destination: number): Attack | undefined {
    if (destination === none) return undefined;
    const number = this.#host.traffic.attacks[destination] as number;
    return number === none ? undefined : this.#numbered[number];
  }

  #judgeSubnets({ subnets, addresses }: Findings, begun: Set<Attack>, nowMs: number): void {
    const { traffic } = this.#host;
    const fresh = new Set<number>();
    const confirmed = subnets.filter((finding) => this.#isConfirmed(finding));
    for (const finding of confirmed) {
      const attack = this.#at(finding.destination);
      if (attack === undefined) fresh.add(finding.destination);
      else if (finding.vector !== TOTAL) attack.join(finding.vector, finding.excess, nowMs);
    }
    if (fresh.size === 0) return;
    const members = membersOf(traffic, fresh);
    const excessive = new Set(addresses.map(({ destination, vector }) => `${destination} ${vector}`));
    for (const { destination, vector } of strongestFirst(confirmed)) {
      if (!fresh.has(destination)) continue;
      const attack = this.#at(destination);
      if (attack !== undefined && vector === TOTAL) continue;
      const key = traffic.keyOf(destination, vector);
      const whole = { ...traffic.sum(key, sums) };
      const shares = (members.get(destination) ?? []).flatMap((member): Member[] => {
        const of = traffic.keyOf(member, vector);
        if (of < 0) return [];
        return [{ ...traffic.sum(of, sums), isExcessive: excessive.has(`${member} ${vector}`) }];
      });
      const excess = judgeSubnet(whole, shares, this.#limits(destination, vector));
      if (excess === undefined) continue;
      if (attack !== undefined) attack.join(vector, excess, nowMs);
      else this.#begin(destination, vector, excess, begun, nowMs);
    }
  }

  #judgeAddresses(findings: readonly Finding[], begun: Set<Attack>, nowMs: number): void {
    const { traffic } = this.#host;
    let counted: AddressAttackCounts | undefined;
    for (const { destination, vector, excess } of strongestFirst(
      findings.filter((finding) => this.#isConfirmed(finding)),
    )) {
      const aggregate = traffic.aggregates[destination] as number;
      const own = this.#at(destination);
      const around = this.#at(aggregate);
      if (vector === TOTAL && (own ?? around) !== undefined) continue;
      if (own !== undefined) {
        own.join(vector, excess, nowMs);
        continue;
      }
      counted ??= new AddressAttackCounts(traffic, this.#byDestination.values());
      // Another vector than the subnet's is another attack, until it is on as many addresses.
      const isOfSubnet = aggregate !== none && (around?.vectors.has(vector) || !counted.hasRoom(aggregate, vector));
      if (!isOfSubnet) {
        this.#begin(destination, vector, excess, begun, nowMs);
        counted.add(aggregate, vector);
        continue;
      }
      const exceeded = this.#exceededBySubnet(aggregate, vector, excess);
      if (around === undefined) this.#begin(aggregate, vector, exceeded, begun, nowMs, excess);
      else {
        around.join(vector, exceeded, nowMs);
        around.confirm(this.#host.slotMs(traffic.slot) + SLOT_MILLISECONDS);
      }
    }
  }

  /** An attack on a subnet lives of what the subnet may have: what is too much for one address is usual for many. */
  #exceededBySubnet(aggregate: number, vector: number, excess: Excess): Excess {
    return { ...excess, value: this.#limits(aggregate, vector)[excess.metric] };
  }

  /** `told`: what is said to have been exceeded, where that is another thing than what it lives of. */
  #begin(
    destination: number,
    vector: number,
    exceeded: Excess,
    begun: Set<Attack>,
    nowMs: number,
    told: Excess = exceeded,
  ): void {
    const { traffic, places } = this.#host;
    if (this.size >= MOST_ATTACKS) {
      this.refused++;
      return;
    }
    const levels = places.levels(traffic, destination);
    const dst = formatPrefix(prefixAt(traffic, destination));
    const startedMs = startOf(traffic, this.#host.slotMs, destination, vector, exceeded);
    const attack = new Attack(
      {
        id: this.#host.newId(),
        dst,
        startedMs,
        detectedMs: nowMs,
        holdMilliseconds: this.#ended.holdOf(dst, levels.holdMilliseconds, startedMs),
        threshold: {
          policy: levels.policies[vector] ?? 'default',
          vector: vectorNames[vector] as string,
          metric: told.metric,
          value: Math.round(told.value),
          observed: Math.round(told.observed),
          ...(told.baseline !== undefined && { baseline: Math.round(told.baseline) }),
        },
      },
      destination,
      this.#host.slotMs(traffic.slot) + SLOT_MILLISECONDS,
    );
    attack.join(vector, exceeded, nowMs);
    if (!traffic.isAggregate(destination)) traffic.takeFromAggregate(destination);
    this.#keep(attack, destination);
    begun.add(attack);
  }

  /** What is too much only in all waits for a vector that may be behind it, and follow in a slot. */
  #isConfirmed({ destination, vector, excess, streak }: Finding): boolean {
    if (streak >= CONFIRMING_JUDGEMENTS) return true;
    return excess.isClear && (vector !== TOTAL || !this.#hasNearVector(destination));
  }

  /** Whether one of them has half of what would be too much of it. */
  #hasNearVector(destination: number): boolean {
    const { traffic } = this.#host;
    for (const vector of vectorNames.keys()) {
      const key = vector === TOTAL ? none : traffic.keyOf(destination, vector);
      if (key === none) continue;
      const { packets, bytes } = traffic.sum(key, sums);
      const limits = this.#limits(destination, vector);
      if (packets >= limits.pps / 2 || bytes * 8 >= limits.bps / 2) return true;
    }
    return false;
  }

  #limits(destination: number, vector: number) {
    const { traffic, places, baselines } = this.#host;
    const levels = places.levels(traffic, destination);
    const key = traffic.keyOf(destination, vector);
    const usual = key < 0 ? undefined : baselines.usual(traffic.baselines[key] as number);
    return limitsOf(levels.pps[vector] as number, levels.bps[vector] as number, usual, levels.factor);
  }

  #rowOf({ family, length, value }: Prefix): number {
    const [a = 0, b = 0, c = 0, d = 0] = wordsOf(family, value);
    return this.#host.traffic.ensure(a, b, c, d, tagOf(family, length));
  }

  /** Of one that was taken over without a word of what it had exceeded: what it would have to exceed now. */
  #thresholdOf({ threshold, vectors }: Attack, row: number): Threshold {
    const [vector = TOTAL] = vectors.keys();
    const limits = this.#limits(row, vector);
    const metric = Number.isFinite(limits.pps) ? 'pps' : 'bps';
    const value = Number.isFinite(limits[metric]) ? Math.round(limits[metric]) : 0;
    const policy = this.#host.places.levels(this.#host.traffic, row).policies[vector] ?? 'default';
    return { ...threshold, policy, metric, value, observed: value };
  }

  #keep(attack: Attack, row: number): boolean {
    if (this.size >= MOST_ATTACKS) {
      this.refused++;
      return false;
    }
    const { traffic, places } = this.#host;
    const number = this.#free.pop() ?? this.#numbered.length;
    this.#numbered[number] = attack;
    this.#byDestination.set(attack.dst, attack);
    attack.fit(this.#keys);
    this.#place(attack, row, number);
    if (attack.holdMilliseconds === 0) attack.holdMilliseconds = places.levels(traffic, row).holdMilliseconds;
    return true;
  }

  #place(attack: Attack, row: number, number: number): void {
    const { traffic } = this.#host;
    attack.destination = row;
    traffic.attacks[row] = number;
    traffic.pin(row);
  }

  #end(attack: Attack, endedMs: number, nowMs: number): void {
    this.#host.tell(attack.report('ended', nowMs, endedMs));
    this.#ended.add(attack, endedMs, nowMs);
    this.#drop(attack);
  }

  #tellEndAgain(ongoing: OngoingAttack, nowMs: number): void {
    const endedMs = this.#ended.toTellAgain(ongoing.id, nowMs);
    if (endedMs === undefined) return;
    this.#host.tell(adoptedAttack(ongoing, ongoing.dst, nowMs).report('ended', nowMs, endedMs));
  }

  #drop(attack: Attack): void {
    const { traffic } = this.#host;
    this.#byDestination.delete(attack.dst);
    const number = this.#numbered.indexOf(attack);
    this.#numbered[number] = undefined;
    this.#free.push(number);
    if (attack.destination !== none) {
      traffic.attacks[attack.destination] = none;
      traffic.unpin(attack.destination);
    }
    this.#host.ended(attack);
  }
}

/** `total` last: it is an attack of its own only where no vector was. */
function strongestFirst(findings: readonly Finding[]): Finding[] {
  const strength = ({ vector, excess }: Finding) => (vector === TOTAL ? -1 : excess.observed / excess.value);
  return [...findings].sort((a, b) => strength(b) - strength(a));
}
