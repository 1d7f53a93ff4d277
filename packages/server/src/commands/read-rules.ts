/**
 * Reads single firewall rules. Reads that arrive together share one statement: while one is under way the next ones
 * gather, so that the database sees a few statements a millisecond at most, however many clients ask.
 */
import type pg from 'pg';
import type { Caller } from './caller.ts';
import { hitColumns, hitsJoin, type RuleRow, ruleColumns } from './rule-row.ts';

const readStatement = {
  name: 'rules_read',
  text: `select ${ruleColumns}, ${hitColumns} from firewall_rule r ${hitsJoin} where r.uuid = any($1)`,
};

interface Waiting {
  readonly resolve: (row: RuleRow | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export interface RuleReader {
  /** `uuid` is well-formed. Undefined: there is none. Throws what the driver throws. */
  read(uuid: string): Promise<RuleRow | undefined>;
}

/** Measured with 64 connections on two cores: with more at once the batches shrink and each row costs more. */
const batchesAtOnce = 2;

export function createRuleReader(pool: Pick<pg.Pool, 'query'>): RuleReader {
  let waiting = new Map<string, Waiting[]>();
  let underWay = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || underWay >= batchesAtOnce || waiting.size === 0) return;
    scheduled = true;
    // After the sockets that are readable now have been read: their requests join this batch.
    setImmediate(flush);
  }

  async function flush(): Promise<void> {
    scheduled = false;
    const batch = waiting;
    waiting = new Map();
    underWay++;
    try {
      const { rows } = await pool.query<RuleRow>({ ...readStatement, values: [[...batch.keys()]] });
      for (const row of rows) {
        for (const each of batch.get(row.uuid) ?? []) each.resolve(row);
        batch.delete(row.uuid);
      }
      for (const missed of batch.values()) for (const each of missed) each.resolve(undefined);
    } catch (error) {
      for (const failed of batch.values()) for (const each of failed) each.reject(error);
    } finally {
      underWay--;
      schedule();
    }
  }

  return {
    read(uuid) {
      return new Promise((resolve, reject) => {
        const key = uuid.toLowerCase();
        const others = waiting.get(key);
        if (others === undefined) waiting.set(key, [{ resolve, reject }]);
        else others.push({ resolve, reject });
        schedule();
      });
    },
  };
}

/** A provider also reads what its users own; to everyone else another's object does not exist. */
export function mayRead(caller: Caller, row: Pick<RuleRow, 'owner_uuid' | 'provider_uuid'>): boolean {
  return row.owner_uuid === caller.accountUuid || row.provider_uuid === caller.accountUuid;
}
