/** What a router's agent must have reported to be able to enforce a kind of filter, and the words for it. Pure data. */
import { filterKinds } from './catalogue.ts';

export interface FilterNeed {
  readonly capability: string;
  /** After "its agent does not enforce". */
  readonly words: string;
}

const needOf = (id: number, name: string): FilterNeed => ({
  capability: `filter:${id}`,
  words: `filters of kind ${name} (${id})`,
});

const needs = new Map(filterKinds.map(({ id, name }) => [id, needOf(id, name)]));

/** A row may name a kind that a newer release stored: nothing here enforces it. */
export function filterNeed(kindId: number): FilterNeed {
  return needs.get(kindId) ?? needOf(kindId, 'unknown');
}
