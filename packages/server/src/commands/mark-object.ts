/**
 * Marks one stored object of any kind for deletion, in one statement. The row itself goes when nothing holds the object
 * any more (sweep). Marking twice changes nothing and is no error; a provider may mark what its users own.
 */
import { markingText, type StoredKindName, storedKinds } from '../store/stored-kinds.ts';
import type { Caller } from './caller.ts';
import type { Executor, Statement } from './executor.ts';
import { done, type Outcome, refuse } from './outcome.ts';
import { type ChangePlace, type StoredRow, storedColumns } from './stored-row.ts';

export interface MarkedObject {
  /** As it was before. */
  readonly before: StoredRow;
  /** Of the marking, whenever it was. */
  readonly change: ChangePlace;
  /** False: it was marked already. */
  readonly fresh: boolean;
}

function statementOf(kind: StoredKindName): Statement {
  return {
    name: `${kind}_mark`,
    text: `with target as (
        select * from ${kind} where uuid = $1 and (owner_uuid = $2 or provider_uuid = $2) for update
      ), ${markingText(kind, 'r.uuid = target.uuid', 'target')}
      select ${storedColumns}, marked.change_xid::text::int8 as marked_xid, marked.change_position as marked_position
      from target r left join marked using (uuid)`,
  };
}

const statements = Object.fromEntries(
  Object.keys(storedKinds).map((name) => [name, statementOf(name as StoredKindName)]),
);

type MarkedRow = StoredRow & { readonly marked_xid: number | null; readonly marked_position: number | null };

/** `uuid` is well-formed. */
export async function markObject(
  executor: Executor,
  caller: Pick<Caller, 'accountUuid'>,
  kind: StoredKindName,
  uuid: string,
): Promise<Outcome<MarkedObject>> {
  const [row] = await executor.rows<MarkedRow>(statements[kind] as Statement, [uuid, caller.accountUuid]);
  if (row === undefined) return refuse('not_found');
  const { marked_xid, marked_position, ...before } = row;
  if (marked_xid === null || marked_position === null) return done({ before, change: before, fresh: false });
  return done({ before, change: { change_xid: marked_xid, change_position: marked_position }, fresh: true });
}
