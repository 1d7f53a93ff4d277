import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type KnownAttack, type PlacedAttack, placeReport, type ReportTimes } from './placement.ts';

const MINUTE = 60_000;
const NOW = 100_000 * MINUTE;

type Told = Partial<Omit<ReportTimes, 'phase'>> & Pick<ReportTimes, 'phase'>;

/** What a store makes of reports, one after the other. `holder` is whose the destination is at that moment. */
class Records {
  readonly rows = new Map<string, PlacedAttack & { readonly holder: string }>();
  #made = 0;

  tell(told: Told, holder = 'alice'): string {
    const known: KnownAttack[] = [...this.rows].map(([uuid, row]) => ({
      ...row,
      uuid,
      isFormerHolders: row.holder !== holder,
    }));
    const report = {
      startedMs: undefined,
      endedMs: undefined,
      measuredMs: undefined,
      nowMs: NOW,
      isNamed: false,
      heldSinceMs: 0,
      ...told,
    };
    const { target, others } = placeReport(known, report);
    for (const each of others) this.#keep(each, holder);
    return this.#keep(target, holder);
  }

  #keep(placed: PlacedAttack, holder: string): string {
    const uuid = placed.uuid ?? `attack-${++this.#made}`;
    this.rows.set(uuid, { ...placed, uuid, holder: this.rows.get(uuid)?.holder ?? holder });
    return uuid;
  }

  /** In the order of their starts, in minutes. */
  get times(): unknown[] {
    return [...this.rows.values()]
      .sort((a, b) => a.startedMs - b.startedMs)
      .map(({ startedMs, endedMs, endReason, startTold }) => [
        startedMs / MINUTE,
        endedMs === undefined ? undefined : endedMs / MINUTE,
        endReason,
        startTold,
      ]);
  }
}

const started = (minute: number): Told => ({ phase: 'started', startedMs: minute * MINUTE });
const ended = (minute: number): Told => ({ phase: 'ended', endedMs: minute * MINUTE });
const changed = (start: number, minute: number): Told => ({
  phase: 'changed',
  startedMs: start * MINUTE,
  measuredMs: minute * MINUTE,
});

interface Attack {
  readonly start: number;
  readonly changes: readonly number[];
  readonly end: number | undefined;
}

/** Each begins more than a quarter of an hour after the last word of the one before; the ends of some get lost. */
const sequences = fc
  .array(
    fc.record({
      quiet: fc.integer({ min: 16, max: 3000 }),
      steps: fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 3 }),
      last: fc.integer({ min: 2, max: 200 }),
      isEndTold: fc.boolean(),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((given) => {
    let at = 0;
    return given.map(({ quiet, steps, last, isEndTold }): Attack => {
      const start = at + quiet;
      at = start;
      const changes = steps.map((step) => {
        at += step;
        return at;
      });
      if (isEndTold) at += last;
      return { start, changes, end: isEndTold ? at : undefined };
    });
  });

const reportsOf = ({ start, changes, end }: Attack): Told[] => [
  started(start),
  ...changes.map((at) => changed(start, at)),
  ...(end === undefined ? [] : [ended(end)]),
];

const timesOf = (attacks: readonly Attack[]) =>
  attacks.map(({ start, changes, end }, index) => {
    if (end !== undefined) return [start, end, 'reported', true];
    if (index === attacks.length - 1) return [start, undefined, undefined, true];
    return [start, Math.max(start, ...changes), 'another_began', true];
  });

test('attacks told of in any order, with any repetition, are the same records', () => {
  const orders = sequences.chain((attacks) => {
    const all = attacks.flatMap(reportsOf);
    return fc.tuple(
      fc.constant(attacks),
      fc.shuffledSubarray(all, { minLength: all.length }),
      fc.array(fc.tuple(fc.constantFrom(...all), fc.nat()), { maxLength: 6 }),
    );
  });
  fc.assert(
    fc.property(orders, ([attacks, order, repeated]) => {
      const told = [...order];
      for (const [report, at] of repeated) told.splice(at % (told.length + 1), 0, report);
      const records = new Records();
      for (const report of told) records.tell(report);
      assert.deepEqual(records.times, timesOf(attacks));
    }),
    { numRuns: 2000 },
  );
});

test('attacks that follow each other closely are told apart when told in order, whatever is sent again', () => {
  const pulses = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })), {
    minLength: 1,
    maxLength: 8,
  });
  const withRepeats = fc.tuple(pulses, fc.infiniteStream(fc.nat()));
  fc.assert(
    fc.property(withRepeats, ([given, choices]) => {
      let at = 0;
      const attacks = given.map(([pause, length]): Attack => {
        const start = at + pause;
        at = start + length;
        return { start, changes: [], end: at };
      });
      const records = new Records();
      const told: Told[] = [];
      for (const report of attacks.flatMap(reportsOf)) {
        records.tell(report);
        told.push(report);
        const choice = Number(choices.next().value);
        if (choice % 2 === 0) records.tell(told[(choice / 2) % told.length] as Told);
      }
      assert.deepEqual(records.times, timesOf(attacks));
    }),
    { numRuns: 1000 },
  );
});

test('a start long after the last word of an attack is another attack, and ends the silent one there', () => {
  const records = new Records();
  const first = records.tell(started(0));
  assert.equal(records.tell({ phase: 'changed', measuredMs: 30 * MINUTE }), first, 'a change is of what is going on');
  assert.equal(records.tell(started(44)), first);
  assert.notEqual(records.tell(started(44 + 19 * 1440)), first);
  assert.deepEqual(records.times, [
    [0, 44, 'another_began', true],
    [44 + 19 * 1440, undefined, undefined, true],
  ]);
});

test('an end clearly before the start of the attack that goes on is of the one before, or stands alone', () => {
  const records = new Records();
  const first = records.tell(started(0));
  const second = records.tell(started(600));
  assert.equal(records.tell(ended(90)), first);
  assert.equal(records.tell(ended(90)), first, 'sent again');
  const alone = records.tell(ended(300));
  assert.ok(alone !== first && alone !== second);
  assert.equal(records.tell(ended(300)), alone, 'sent again');
  assert.deepEqual(records.times, [
    [0, 90, 'reported', true],
    [300, 300, 'reported', false],
    [600, undefined, undefined, true],
  ]);
  assert.equal(records.tell({ phase: 'ended', endedMs: 600 * MINUTE - 5000 }), second, 'clocks are apart by as much');
  assert.deepEqual(records.times.at(-1), [600, 600, 'reported', true]);
});

test('what is told of a destination that changed hands is recorded for its present holder alone', () => {
  for (const isNamed of [false, true]) {
    const records = new Records();
    const tell = (told: Told, holder: string) => records.tell({ ...told, isNamed, heldSinceMs: 0 }, holder);
    const first = tell(started(0), 'bob');
    tell(changed(0, 5), 'bob');
    assert.equal(tell(changed(0, 5), 'alice'), first, 'what was told before is no news of her');
    const second = tell(changed(0, 20), 'alice');
    assert.notEqual(second, first);
    assert.equal(tell(changed(0, 25), 'alice'), second, 'by the start that it has had since the other holder');
    assert.equal(tell(started(0), 'alice'), first);
    assert.equal(tell(changed(0, 3), 'alice'), first);
    assert.equal(tell(ended(40), 'alice'), second);
    assert.deepEqual(records.times, [
      [0, 5, 'holder_changed', true],
      [20, 40, 'reported', true],
    ]);
    assert.deepEqual(
      [...records.rows.values()].map(({ holder }) => holder),
      ['bob', 'alice'],
    );
  }
});

test('an end after the destination changed hands ends what was told of it before, and begins nothing', () => {
  const records = new Records();
  const first = records.tell({ phase: 'started', nowMs: NOW - 9 * MINUTE }, 'bob');
  assert.equal(records.tell({ phase: 'ended' }, 'alice'), first);
  assert.equal(records.rows.size, 1);
});

test('what was measured before the present holder had the destination is of the one before', () => {
  const records = new Records();
  const first = records.tell(started(0), 'bob');
  assert.equal(records.tell({ ...changed(0, 20), heldSinceMs: 21 * MINUTE }, 'alice'), first);
  assert.notEqual(records.tell({ ...changed(0, 22), heldSinceMs: 21 * MINUTE }, 'alice'), first);
});

test('an attack that was taken for over because of silence goes on when more is told of it', () => {
  const records = new Records();
  const uuid = records.tell(started(0));
  const row = records.rows.get(uuid);
  assert.ok(row);
  records.rows.set(uuid, { ...row, endedMs: 0, endReason: 'silent' });
  assert.equal(records.tell(started(0)), uuid);
  assert.equal(records.times.length, 1);
  assert.deepEqual(records.times[0], [0, 0, 'silent', true], 'a report that was sent again is no sign of life');
  assert.equal(records.tell({ phase: 'changed', measuredMs: 3000 * MINUTE }), uuid);
  assert.deepEqual(records.times[0], [0, undefined, undefined, true]);
});
