/** How a filter is answered: its state needs routers whose agents enforce its kind; and what it discarded. */
import { filterNeed } from '@levee/core/filter/need.ts';
import type { FilterRow } from '../commands/filter-row.ts';
import { hitsText } from './hits-text.ts';
import { type AppliedStates, type RenderedObject, renderStored } from './object-answer.ts';

export function renderFilter(row: FilterRow, states: AppliedStates): RenderedObject {
  const derived = states.stateOf({
    uuid: row.uuid,
    change: { xid: row.change_xid, position: row.change_position },
    changedMilliseconds: row.updated_ms,
    deleted: row.deleted,
    needs: filterNeed(row.kind),
  });
  return renderStored(row, derived, hitsText(row));
}
