/** From a request for the stream of events to a place in it and a choice among them. Sends none of them itself. */
import type { Problem } from '@levee/contract/errors.ts';
import { eventNames, eventSelectors, selectorsOf } from '@levee/contract/event-names.ts';
import { showReceived } from '@levee/core/problem.ts';
import type { Caller } from '../../commands/caller.ts';
import { refuse } from '../../commands/outcome.ts';
import { type EventPlace, type EventScope, parseEventId } from '../../events/read-events.ts';
import { type EventStreams, STREAMS_OF_A_KEY } from '../../events/streams.ts';
import { type Call, type Handler, judgedBy } from '../call.ts';

interface Wanted {
  readonly after: EventPlace | undefined;
  readonly names: ReadonlySet<string> | undefined;
}

export function eventHandlers(streams: EventStreams): Record<string, Handler> {
  return {
    readEvents: {
      judge(call) {
        const problems: Problem[] = [];
        const after = judgePlace(call, problems);
        const names = judgeNames(call.query.events, problems);
        return judgedBy(problems, { after, names } satisfies Wanted);
      },
      async read(call, judged) {
        const { after, names } = judged as Wanted;
        const { keyUuid } = call.caller;
        const takeOver = streams.prepare({ keyUuid, scope: scopeOf(call.caller), names, after });
        if (takeOver === undefined) return refuse('rate_limited', tooMany);
        return { ok: true, answer: { body: '', takeOver: await takeOver } };
      },
    },
  };
}

const tooMany: Problem = {
  field: '',
  code: 'too_many_streams',
  message: `This API key holds ${STREAMS_OF_A_KEY} event streams already, which is as many as it may; end one of them.`,
};

/** What the header says goes before the query: a client that reconnects repeats the query of its first request. */
function judgePlace({ raw, query }: Call, problems: Problem[]): EventPlace | undefined {
  const header = raw.headers['last-event-id'];
  // An empty one says that no event was received yet.
  if (header !== undefined && header !== '') return judgeId(String(header), 'Last-Event-ID', problems);
  return typeof query.after === 'string' ? judgeId(query.after, '?after', problems) : undefined;
}

function judgeId(text: string, field: string, problems: Problem[]): EventPlace | undefined {
  const place = parseEventId(text);
  if (place === undefined) {
    const name = field.replace('?', '');
    const message = `${name}: must be the id of an event, or 0 for the oldest kept, received ${showReceived(text)}`;
    problems.push({ field, code: 'malformed', message });
  }
  return place;
}

/** Undefined: all. */
function judgeNames(given: unknown, problems: Problem[]): ReadonlySet<string> | undefined {
  if (typeof given !== 'string') return undefined;
  const wanted = new Set(given.split(',').map((each) => each.trim()));
  for (const each of wanted) {
    if (eventSelectors.includes(each)) continue;
    const allowed = eventSelectors.join(', ');
    const message = `events: must be names separated by commas, each one of ${allowed}, received ${showReceived(each)}`;
    problems.push({ field: '?events', code: 'not_allowed', message });
    return undefined;
  }
  if (wanted.has('*')) return undefined;
  return new Set(eventNames.filter((name) => selectorsOf(name).some((selector) => wanted.has(selector))));
}

export function scopeOf({ role, accountUuid }: Pick<Caller, 'role' | 'accountUuid'>): EventScope {
  if (role === 'operator') return 'all';
  return role === 'provider' ? { providerUuid: accountUuid } : { ownerUuid: accountUuid };
}
