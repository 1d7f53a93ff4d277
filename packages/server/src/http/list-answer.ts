/**
 * Answers a list of objects of any kind, in order of creation: streamed while it is read, or one page when `limit` asks
 * for it. Owns the pages' cursors and `Link` header (RFC 8288). A state may be derived, so a filter by state is applied
 * to what was read.
 */
import { Readable } from 'node:stream';
import type { Problem } from '@levee/contract/errors.ts';
import { formatPrefix, parsePrefix } from '@levee/core/net/prefix-text.ts';
import type { ListScope } from '../commands/list-objects.ts';
import { type Answered, type Call, type Judged, judgedBy } from './call.ts';

/** How one kind of object is listed. */
export interface Listing<Row extends { readonly sequence: number }> {
  /** In order of sequence; never yields an empty chunk, throws what the driver throws. */
  chunks(scope: ListScope): AsyncGenerator<readonly Row[], void, undefined>;
  /** JSON text of the object, and its state as shown. */
  render(row: Row): { readonly state: string; readonly text: string };
  /** Around the array, for a list that is answered as an object. */
  readonly frame?: { readonly before: string; readonly after: string };
}

/** Where a list begins and what it is narrowed to. */
export type ListFilter = Pick<ListScope, 'dst' | 'after'>;

export function judgeList({ query }: Call): Judged {
  const problems: Problem[] = [];
  const dst = typeof query.dst === 'string' ? judgeDestination(query.dst, problems) : undefined;
  const after = typeof query.cursor === 'string' ? sequenceOf(query.cursor) : 0;
  if (after === undefined) problems.push(notACursor);
  return judgedBy(problems, { dst, after } as ListFilter);
}

/** The canonical text of `?dst=`, or another name's; undefined after a problem was added. */
export function judgeDestination(given: string, problems: Problem[], name = 'dst'): string | undefined {
  const parsed = parsePrefix(given);
  if (parsed.ok) return formatPrefix(parsed.prefix);
  problems.push({ field: `?${name}`, code: parsed.code, message: `${name}: ${parsed.sentence}` });
  return undefined;
}

export async function answerList<Row extends { readonly sequence: number }>(
  listing: Listing<Row>,
  call: Call,
  of: ListScope['of'],
  filter: ListFilter,
): Promise<Answered> {
  const { query } = call;
  const ownerUuid = typeof query.user_uuid === 'string' ? query.user_uuid : undefined;
  const state = typeof query.state === 'string' ? query.state : undefined;
  const scope: ListScope = { of, ownerUuid, ...filter };
  if (typeof query.limit === 'number') return page(listing, call, scope, state, query.limit);
  const texts = listTexts(listing, scope, state);
  // The first statement decides between an answer and an error; after it only the connection can be cut.
  const first = await texts.next();
  return {
    ok: true,
    answer: { body: Readable.from(resume(first, texts), { objectMode: false, highWaterMark: 65_536 }) },
  };
}

async function* listTexts<Row extends { readonly sequence: number }>(
  { chunks, render, frame }: Listing<Row>,
  scope: ListScope,
  state: string | undefined,
): AsyncGenerator<string, void, undefined> {
  const open = `${frame?.before ?? ''}[`;
  let begin = open;
  for await (const rows of chunks(scope)) {
    let text = '';
    for (const row of rows) {
      const object = render(row);
      if (state !== undefined && object.state !== state) continue;
      text += text === '' ? begin + object.text : `,${object.text}`;
    }
    if (text === '') continue;
    yield text;
    begin = ',';
  }
  yield `${begin === open ? open : ''}]${frame?.after ?? ''}`;
}

async function* resume(
  first: IteratorResult<string, void>,
  rest: AsyncGenerator<string, void, undefined>,
): AsyncGenerator<string, void, undefined> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

async function page<Row extends { readonly sequence: number }>(
  { chunks, render, frame }: Listing<Row>,
  call: Call,
  scope: ListScope,
  state: string | undefined,
  limit: number,
): Promise<Answered> {
  const texts: string[] = [];
  let last = scope.after;
  let more = false;
  read: for await (const rows of chunks(scope)) {
    for (const row of rows) {
      const object = render(row);
      if (state !== undefined && object.state !== state) continue;
      if (texts.length === limit) {
        more = true;
        break read;
      }
      texts.push(object.text);
      last = row.sequence;
    }
  }
  const body = `${frame?.before ?? ''}[${texts.join(',')}]${frame?.after ?? ''}`;
  return { ok: true, answer: more ? { body, headers: { link: nextLink(call, last) } } : { body } };
}

export function nextLink(call: Call, last: number): string {
  const url = new URL(call.raw.url ?? '/', 'http://localhost');
  url.searchParams.set('cursor', last.toString(36));
  return `<${url.pathname}${url.search}>; rel="next"`;
}

export const notACursor: Problem = {
  field: '?cursor',
  code: 'malformed',
  message: 'cursor: is not a cursor of this list; take it from the Link header of the page before',
};

/** The cursor is the sequence of the last object that was shown, in base 36. */
export function sequenceOf(cursor: string): number | undefined {
  if (!/^[0-9a-z]{1,11}$/.test(cursor)) return undefined;
  const sequence = Number.parseInt(cursor, 36);
  return Number.isSafeInteger(sequence) ? sequence : undefined;
}
