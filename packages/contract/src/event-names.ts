/**
 * The names of events and how a client chooses among them, once: for the stream, webhooks and whoever writes events.
 * Says nothing about when an event is told.
 */

const stored = ['pending', 'active', 'failed', 'marked_for_deletion', 'deleted'] as const;

/** Object → what can be told of it. */
export const eventsOf = {
  firewall_rule: ['pending', 'active', 'disabled', 'failed', 'marked_for_deletion', 'deleted'],
  filter: stored,
  tunnel: stored,
  rdns: stored,
  flowrule: ['proposed', ...stored],
  attack: ['started', 'changed', 'ended'],
} as const;

export type EventObject = keyof typeof eventsOf;

const objects = Object.entries(eventsOf) as [EventObject, readonly string[]][];

export const eventNames: readonly string[] = objects.flatMap(([object, whats]) =>
  whats.map((what) => `${object}.${what}`),
);

/** What a client may ask for: everything, all of an object's, one. */
export const eventSelectors: readonly string[] = ['*', ...objects.map(([object]) => `${object}.*`), ...eventNames];

/** Sent by `POST /webhook/{uuid}/test` alone; not to be asked for. */
export const testEventName = 'webhook.test';

/** The selectors that an event answers to. */
export function selectorsOf(name: string): readonly [string, string, string] {
  return ['*', `${name.slice(0, name.indexOf('.'))}.*`, name];
}
