/**
 * Gathers rules that are created at the same time into one statement and one commit. While commits are under way the
 * next rules gather, so that a burst costs the database a few commits and not one a rule. Every answer still comes
 * after its commit. When a gathered statement fails, its rules are tried one by one: one rule's fault is not
 * another's.
 *
 * Rules that a quota binds have a transaction each, one at a time for a provider and its users: they would only wait
 * for each other in the database, each on a connection that others need.
 */
import type pg from 'pg';
import { isUnavailable } from '../store/failure.ts';
import { type CreatedRule, createRules, createRuleWithinQuota, type NewRule } from './create-rule.ts';
import { type Executor, executorOf, transact } from './executor.ts';
import type { Outcome } from './outcome.ts';

export interface RuleCreator {
  /** Throws what the driver throws. */
  create(rule: NewRule): Promise<Outcome<CreatedRule>>;
}

interface Waiting {
  readonly rule: NewRule;
  readonly resolve: (outcome: Outcome<CreatedRule>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits are on their way to the disk while the next statements run. Ratio to pgbench on a machine busy with other
 * work: 0.43 with one, 0.50 with two and four, 0.63 with eight; but eight leave little to gather.
 */
const commitsAtOnce = 4;
const rulesAtOnce = 200;

export function createRuleCreator(pool: pg.Pool): RuleCreator {
  const executor = executorOf(pool);
  /** By provider: the last of those that wait for their turn. */
  const turns = new Map<string, Promise<void>>();
  const waiting: Waiting[] = [];
  let underWay = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || underWay >= commitsAtOnce || waiting.length === 0) return;
    scheduled = true;
    // After the sockets that are readable now have been read: their rules join.
    setImmediate(() => {
      scheduled = false;
      underWay++;
      void carryOut(executor, waiting.splice(0, rulesAtOnce), createLimited).finally(() => {
        underWay--;
        schedule();
      });
      schedule();
    });
  }

  function createLimited({ rule, resolve, reject }: Waiting): void {
    const provider = rule.caller.providerUuid ?? rule.caller.accountUuid;
    const turn = (turns.get(provider) ?? Promise.resolve())
      .then(() => transact(pool, (own) => createRuleWithinQuota(own, rule)))
      .then(resolve, reject)
      .finally(() => {
        if (turns.get(provider) === turn) turns.delete(provider);
      });
    turns.set(provider, turn);
  }

  return {
    create(rule) {
      return new Promise((resolve, reject) => {
        waiting.push({ rule, resolve, reject });
        schedule();
      });
    },
  };
}

async function carryOut(
  executor: Executor,
  batch: readonly Waiting[],
  createLimited: (limited: Waiting) => void,
): Promise<void> {
  try {
    const outcomes = await createRules(
      executor,
      batch.map((each) => each.rule),
    );
    for (const [index, each] of batch.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined || outcome === 'limited') createLimited(each);
      else each.resolve(outcome);
    }
  } catch (error) {
    if (batch.length === 1 || isUnavailable(error)) for (const each of batch) each.reject(error);
    else await Promise.all(batch.map((each) => carryOut(executor, [each], createLimited)));
  }
}
